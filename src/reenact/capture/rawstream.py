"""A stream as it came, kept beside the trace: its bytes, and when each piece of them arrived.

The blob is zlib of a JSON line ``{"chunks": [[bytes, ms], …]}`` followed by the bytes. ``form`` says what
they are: ``exact``, ``decoded`` (a content encoding was taken off) or ``rebuilt`` (secrets were replaced;
the pieces are then not told). A stream whose answer holds a secret is not kept: it comes a few letters at a
time, which no rule can see in the bytes.
"""

from __future__ import annotations

from . import guard
from .import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .redact import Redactor
    from .texts import Texts


def store(texts: Texts, data: bytes, body: Any, chunks: str, *, decoded: bool) -> dict[str, Any] | None:
    """Write the blob; returns what stands for it in the line, None where content is not kept.

    ``body`` is the answer that was put together from it, if that may hold a secret; ``chunks`` are the pieces
    it came in, as JSON.
    """
    if texts.blob_folder is None or texts.content() != "full":
        return None
    if texts.redactor is not None and texts.redactor.finds(body):
        return {"withheld": "secret"}
    with import_lock:
        import zlib

    form = "decoded" if decoded else "exact"
    cleaned = data if texts.redactor is None else cleaned_bytes(data, texts.redactor)
    if cleaned is not data:
        data, form, chunks = cleaned, "rebuilt", ""
    packed = zlib.compress(f'{{"chunks":[{chunks}]}}\n'.encode("ascii") + data, 1)
    try:
        digest = texts.blobs().put(packed)
    except OSError as exc:
        guard.tell(f"blob:{exc.errno}", f"could not keep a stream as it came ({guard.explain(exc)}).")
        return None
    return {"$blob": f"sha256:{digest}", "bytes": len(packed), "form": form}


def cleaned_bytes(data: bytes, redactor: Redactor) -> bytes:
    """Return bytes of text without their secrets: the same object if there are none."""
    if not redactor.may_hold(data):
        return data
    text = data.decode("utf-8", "surrogateescape")
    cleaned = redactor.text(text)
    return data if cleaned is text else cleaned.encode("utf-8", "surrogateescape")
