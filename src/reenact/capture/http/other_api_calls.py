"""Events for API calls that are not completions: embeddings, files, batches, any other HTTP traffic."""

from __future__ import annotations

from typing import Any

from ...wire.reading import model_of
from ...wire.routes import HTTP, MODEL, OTHER, used
from ..calls.error_fields import failure
from ..recorder.jsonable import text_if_utf8
from .request_body import described_body
from .response_body import as_json


def request_fields(about: dict[str, Any], body: Any, content_type: str | None) -> dict[str, Any]:
    """Return the fields of an ``http.request``; ``about`` holds call, sort, method and URL."""
    if isinstance(body, bytes):
        return {**about, "sent": described_body(body, content_type)} if body else about
    return about if body is None else {**about, "body": body}


def response_fields(about: dict[str, Any], error: Any, more: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an ``http.response``; ``more`` are those that may be missing, with the body."""
    fields = {**about, **_spent(about["sort"], more["body"]), "error": failure(error)}
    return {**fields, **{name: value for name, value in more.items() if value is not None}}


def _spent(sort: str, body: Any) -> dict[str, Any]:
    """Return the model and the tokens that a response of a model API reports."""
    if sort in (HTTP, OTHER) or not isinstance(body, dict):
        return {}
    found = {"model": model_of(body), "usage": used(body)}
    return {name: value for name, value in found.items() if value is not None}


def whole_body(data: bytes, sort: str, content_type: str | None) -> Any:
    """Return a body as it is recorded: JSON as its value, else text, else bytes; None if empty.

    Text is recorded verbatim, so text that happens to be JSON, or is quoted, is not parsed.
    """
    is_other = sort in (HTTP, OTHER) and content_type is not None and "json" not in content_type.lower()
    found = None if is_other else as_json(data)
    if sort != MODEL and isinstance(found, str):
        found = None
    return text_if_utf8(data) if found is None and data else found
