"""The ways of recording an agent's calls, each as a context around an unchanged client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

Recording = Callable[[Any, Path], AbstractContextManager[None]]


@contextmanager
def bare(client: Any, folder: Path) -> Iterator[None]:
    yield


def wrapped(*, redact: bool) -> Recording:
    @contextmanager
    def recording(client: Any, folder: Path) -> Iterator[None]:
        import reenact

        with reenact.Tap(output_path=folder / "run.jsonl", redact=redact) as tap:
            tap.wrap(client)
            yield

    return recording


def installed(*, redact: bool) -> Recording:
    @contextmanager
    def recording(client: Any, folder: Path) -> Iterator[None]:
        import reenact

        os.environ["REENACT_DIR"] = str(folder)
        reenact.install()
        try:
            with reenact.run("bench", redact=redact):
                yield
        finally:
            reenact.uninstall()

    return recording


@contextmanager
def vcrpy(client: Any, folder: Path) -> Iterator[None]:
    """Everything is kept in memory and written when the block ends, which is not timed."""
    import vcr

    with vcr.use_cassette(str(folder / "cassette.yaml"), record_mode="all"):
        yield


_tracer: Any = None


@contextmanager
def otel(client: Any, folder: Path) -> Iterator[None]:
    """The SDKs' own instrumentations; a span is in the file when its call returns, as our events are."""
    global _tracer
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    with open(folder / "spans.jsonl", "a", encoding="utf-8") as out:
        exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n")
        if _tracer is None:
            _tracer = TracerProvider()
            _tracer.add_span_processor(SimpleSpanProcessor(exporter))
            AnthropicInstrumentor().instrument(tracer_provider=_tracer)
            OpenAIInstrumentor().instrument(tracer_provider=_tracer)
        else:
            _tracer._active_span_processor._span_processors[0].span_exporter = exporter
        yield


WAYS: dict[str, Recording] = {
    "bare": bare,
    "wrap": wrapped(redact=True),
    "wrap, redact=False": wrapped(redact=False),
    "install": installed(redact=True),
    "install, redact=False": installed(redact=False),
    "reeltime": bare,  # around the whole process: tape run
    "vcrpy": vcrpy,
    "OpenTelemetry": otel,
}
RIVALS = ("reeltime", "vcrpy", "OpenTelemetry")
