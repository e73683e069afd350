"""Calls that ask no model for an answer as events: embeddings, files, any other traffic."""

from __future__ import annotations

from .callers import caller_frames
from .failure import failure
from .sent import body_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .calls import OpenCall
    from .sent import Sent


def request_fields(about: dict[str, Any], body: Any, content_type: str | None) -> dict[str, Any]:
    """Return the fields of an ``http.request``; ``about`` it is known what it is."""
    if isinstance(body, bytes):
        sent = body_before(body, content_type)
        return {**about, "sent": sent} if sent else about
    return about if body is None else {**about, "body": body}


def answer_fields(
    about: dict[str, Any],
    opened: OpenCall,
    status: int | None,
    body: Any,
    error: Any,
    sent: Sent | None,
) -> dict[str, Any]:
    """Return the fields of an ``http.response``."""
    if error is None and (status or 0) >= 400:
        error = {"type": f"http_{status}", "message": "", "frames": caller_frames()}
    fields = {
        **about,
        "status": status,
        "duration_ms": opened.duration_ms(),
        **_spent(about["sort"], body),
        "error": failure(error),
    }
    if body is not None and not isinstance(body, bytes):
        fields["body"] = body
    told = sent.told() if sent is not None else None
    return fields if told is None else {**fields, "sent": told}


def _spent(sort: str, body: Any) -> dict[str, Any]:
    """Return the model and the tokens an answer of a model API tells of."""
    from ..wire.routes import HTTP

    if sort == HTTP or not isinstance(body, dict):
        return {}
    from ..wire.shapes import model_of
    from ..wire.sorts import used

    told = {"model": model_of(body), "usage": used(body)}
    return {name: value for name, value in told.items() if value is not None}
