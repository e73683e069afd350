"""What reenact is measured against: the articles' two recorders and five common libraries.

Each is a class with ``record(kind, payload)``, ``close()`` and ``kept(path, marks)``; ``available()``
returns those that are installed and names those that are not.
"""

from __future__ import annotations

import importlib

HOMES = {
    "article Trace": "article_trace.TraceBaseline",
    "article StepLog": "article_step_log.StepLogBaseline",
    "logging + JSON": "stdlib_logging.LoggingBaseline",
    "structlog": "structlog_json.StructlogBaseline",
    "loguru serialize": "loguru_serialize.LoguruBaseline",
    "OTel batch": "otel_batch.OtelBatchBaseline",
    "Langfuse": "langfuse_sdk.LangfuseBaseline",
}


def available(names: "list[str] | None" = None) -> "tuple[dict[str, type], list[str]]":
    """Return the usable baselines by name, and a sentence for each one that is not installed."""
    found: dict[str, type] = {}
    missing: list[str] = []
    for name in names or HOMES:
        module, _, cls = HOMES[name].partition(".")
        try:
            found[name] = getattr(importlib.import_module(f"{__name__}.{module}"), cls)
        except ImportError as exc:
            missing.append(f"{name}: left out, not installed ({exc.name}); make bench installs it")
    return found, missing
