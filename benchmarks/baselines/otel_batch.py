"""OpenTelemetry SDK: one span an event, BatchSpanProcessor, the SDK's JSON lines to a file."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from .common import Baseline


class OtelBatchBaseline(Baseline):
    remark = "queues; a full queue drops"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self.file = open(path, "a")
        exporter = ConsoleSpanExporter(out=self.file, formatter=lambda span: span.to_json(indent=None) + "\n")
        self.provider = TracerProvider()
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = self.provider.get_tracer("bench")

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        # Attributes hold scalars only, so structured content goes in as JSON text: the documented way.
        with self.tracer.start_as_current_span(kind, attributes={"payload": json.dumps(payload)}):
            pass

    def close(self) -> None:
        self.provider.shutdown()
        self.file.close()
