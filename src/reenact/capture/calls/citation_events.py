"""The event of a citation: which source stands behind a claim of an answer."""

from __future__ import annotations

from ... import schema
from .open_calls import calls_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..recorder.recorder import Recorder

_DETAILS = frozenset(("quote", "span", "page", "confidence", "id", "metadata"))


def write_citation(
    recorder: Recorder, claim: str, source: Any, *, call: str | None = None, **details: Any
) -> None:
    """Write one citation, of the latest answer of this thread or task unless ``call`` names another."""
    fields: dict[str, Any] = {"call": call or calls_of(recorder).parent(), "claim": claim, "source": source}
    fields |= {name: value for name, value in details.items() if name in _DETAILS}
    more = {name: value for name, value in details.items() if name not in _DETAILS}
    if more:
        fields["metadata"] = {**(fields.get("metadata") or {}), **more}
    recorder.emit(schema.CITATION, {name: value for name, value in fields.items() if value is not None})
