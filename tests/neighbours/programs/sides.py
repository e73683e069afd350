"""The neighbours: each is switched on as its users do, and tells at the end what it has of the program's calls."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Report = Callable[[], Any]


class Side(NamedTuple):
    """A neighbour: the module it is, how it is switched on, and whether that is done for a while only."""

    module: str
    on: Callable[[Path], contextlib.AbstractContextManager[Report]]
    is_passing: bool = False


@contextlib.contextmanager
def nobody(folder: Path) -> Iterator[Report]:
    yield lambda: None


@contextlib.contextmanager
def vcr_recording(folder: Path) -> Iterator[Report]:
    """Every call goes into a cassette; the file is what vcrpy has to tell."""
    import vcr

    cassette = folder / "cassette.yaml"
    with vcr.use_cassette(str(cassette), record_mode="all") as using:
        yield lambda: [[each.method, each.uri, _text(each.body), printed["status"], _text(printed["body"]["string"])]
                       for each, printed in using.data]  # fmt: skip
    assert cassette.stat().st_size > 1000


@contextlib.contextmanager
def vcr_playing(folder: Path) -> Iterator[Report]:
    """What was recorded once is played, and nothing goes over the wire."""
    import vcr

    cassette = folder.parent / "played.yaml"
    match = ("method", "path", "body")
    with vcr.use_cassette(
        str(cassette), record_mode="none", match_on=match, allow_playback_repeats=True
    ) as using:
        yield lambda: using.play_count


@contextlib.contextmanager
def respx_router(folder: Path) -> Iterator[Report]:
    """httpx is answered by respx, half of it from a script and half by the real server."""
    import respx

    printed = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "mocked"}], "usage": {"input_tokens": 3, "output_tokens": 1}}  # fmt: skip
    with respx.mock(assert_all_called=False) as router:
        streams = router.route(method="POST", path__regex=".*/v1/messages", content__contains=b'"stream"')
        streams.pass_through()
        router.post(path__regex=".*/v1/messages").respond(json=printed)
        yield lambda: [[str(call.request.url), _text(call.request.content), call.response.status_code if call.has_response else None]
                       for call in router.calls]  # fmt: skip


@contextlib.contextmanager
def opentelemetry_sdk(folder: Path) -> Iterator[Report]:
    """Every instrumentation there is for the libraries of the tour, its spans and metrics kept in memory."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    instrumentors = [_instrumentor(*each.split()) for each in INSTRUMENTORS]
    for each in instrumentors:
        each.instrument()
    try:
        yield lambda: {
            "spans": _spans(kept.get_finished_spans()),
            "metrics": _metrics(reader.get_metrics_data()),
        }
    finally:
        for each in instrumentors:
            each.uninstrument()


INSTRUMENTORS = (
    *("httpx HTTPXClientInstrumentor", "requests RequestsInstrumentor", "urllib3 URLLib3Instrumentor"),
    *(
        "urllib URLLibInstrumentor",
        "aiohttp_client AioHttpClientInstrumentor",
        "botocore BotocoreInstrumentor",
    ),
    *("openai OpenAIInstrumentor", "anthropic AnthropicInstrumentor"),
)


def _instrumentor(module: str, name: str) -> Any:
    import importlib

    return getattr(importlib.import_module(f"opentelemetry.instrumentation.{module}"), name)()


def _spans(finished: Any) -> list[Any]:
    names = {span.context.span_id: span.name for span in finished}
    reported = [
        [
            span.name,
            span.kind.name,
            names.get(span.parent.span_id) if span.parent else None,
            span.status.status_code.name,
            _attributes(span.attributes or {}),
            [event.name for event in span.events],
        ]
        for span in finished
    ]
    return sorted(reported, key=str)


def _metrics(data: Any) -> list[Any]:
    """Names, attributes and how often: what was measured are times."""
    return sorted(
        [
            metric.name,
            _attributes(point.attributes),
            getattr(point, "count", 0),
        ]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    )


@contextlib.contextmanager
def logfire_spans(folder: Path) -> Iterator[Report]:
    import logfire
    from logfire.testing import TestExporter
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    kept = TestExporter()
    logfire.configure(
        send_to_logfire=False,
        console=False,
        additional_span_processors=[SimpleSpanProcessor(kept)],
        metrics=False,
    )
    logfire.instrument_httpx(capture_all=True)
    logfire.instrument_requests()
    logfire.instrument_aiohttp_client()
    logfire.instrument_openai()
    logfire.instrument_anthropic()
    yield lambda: _spans(kept.exported_spans)


@contextlib.contextmanager
def datadog(folder: Path) -> Iterator[Report]:
    """ddtrace as `ddtrace-run` or `import ddtrace.auto` has it; its spans are kept, and none is sent."""
    import ddtrace.auto  # noqa: F401
    from ddtrace.trace import TraceFilter, tracer

    kept: list[Any] = []

    class Keep(TraceFilter):
        def process_trace(self, trace: Any) -> Any:
            kept.extend(trace)

    tracer.configure(trace_processors=[Keep()])

    def counted() -> Any:
        names = {span.span_id: span.name for span in kept}
        return sorted(
            [
                [each.name, each.service, each.resource, str(names.get(each.parent_id)), each.error,
                 _attributes(each.get_tags())]
                for each in kept
            ],
            key=str,
        )  # fmt: skip

    yield counted


def _attributes(attributes: Any) -> list[Any]:
    """Names and values; of times and of ids made up for a span only that they are there."""
    made_up = ("runtime-id", "logfire.pending_parent_id", "_dd.p.tid", "_dd.p.dm")
    return sorted(
        [
            key,
            type(value).__name__
            if isinstance(value, float) or key in made_up
            else re.sub(r"took [\d.]+s", "took", str(value)),
        ]
        for key, value in attributes.items()
    )


def _text(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value


SIDES = {
    "nobody": Side("sys", nobody),
    "vcr recording": Side("vcr", vcr_recording, is_passing=True),
    "vcr playing": Side("vcr", vcr_playing, is_passing=True),
    "respx": Side("respx", respx_router, is_passing=True),
    "opentelemetry": Side("opentelemetry.sdk.trace", opentelemetry_sdk),
    "logfire": Side("logfire", logfire_spans),
    "ddtrace": Side("ddtrace.auto", datadog),
}
