"""Events for API calls that are not completions: embeddings, files, any other traffic."""

from __future__ import annotations

from typing import Any

from ...wire.reading import model_of
from ...wire.routes import HTTP, MODEL, used
from ..calls.error_fields import caller_frames, failure
from ..calls.open_calls import OpenCall
from ..recorder.jsonable import text_if_utf8
from .request_body import Sent, described_body
from .response_body import as_json


def request_fields(about: dict[str, Any], body: Any, content_type: str | None) -> dict[str, Any]:
    """Return the fields of an ``http.request``; ``about`` holds call, sort, method and URL."""
    if isinstance(body, bytes):
        sent = described_body(body, content_type)
        return {**about, "sent": sent} if sent else about
    return about if body is None else {**about, "body": body}


def whole_body(data: bytes, sort: str, content_type: str | None) -> Any:
    """Return a response body as it is recorded: JSON as its value, else text, else bytes; None if empty.

    Text is recorded verbatim, so text that happens to be JSON, or is quoted, is not parsed.
    """
    is_other = sort == HTTP and content_type is not None and "json" not in content_type.lower()
    found = None if is_other else as_json(data)
    if sort != MODEL and isinstance(found, str):
        found = None
    return text_if_utf8(data) if found is None and data else found


def answer_fields(
    about: dict[str, Any], opened: OpenCall, body: Any, error: Any, sent: Sent | None
) -> dict[str, Any]:
    """Return the fields of an ``http.response``."""
    status = about["status"] or 0
    if error is None and status >= 400:
        error = {"type": f"http_{status}", "message": "", "frames": caller_frames()}
    fields = {
        **about,
        "duration_ms": opened.duration_ms(),
        **_spent(about["sort"], body),
        "error": failure(error),
    }
    if body is not None:
        fields["body"] = body
    described = sent.described() if sent is not None else None
    return fields if described is None else {**fields, "sent": described}


def _spent(sort: str, body: Any) -> dict[str, Any]:
    """Return the model and the tokens that a response of a model API reports."""
    if sort == HTTP or not isinstance(body, dict):
        return {}
    found = {"model": model_of(body), "usage": used(body)}
    return {name: value for name, value in found.items() if value is not None}
