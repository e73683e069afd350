"""Content policy: what an event may say when content must not be kept.

``content="hash"`` keeps equality (diffs, counts, money), ``"none"`` keeps sizes only.
``with reenact.private():`` applies it to one block.
"""

from __future__ import annotations

from ...errors import UsageError
from ...lines import dumps
from ..import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import ContextVar, Token
    from typing import Any

_RANK = {"full": 0, "hash": 1, "none": 2}

KEPT_NAMES = frozenset(
    "v call lane parent within tot base keep n chain tool tool_id name id model model_id provider"
    " status stop_reason"
    " ended attempt duration_ms ttft_ms kind role type turn where what effect lossy url workspace".split()
)
"""Names and ids: what makes a trace useful without its content, as long as nothing else stands there."""
MAX_LABEL = 128
"""Characters of a name or an id; what is longer is content."""

private_block: ContextVar[str] | None = None
"""The policy of the ``private()`` block at hand; None in a process that has had no such block."""


class private:
    """Withhold content inside a ``with`` block: ``with reenact.private():``."""

    def __init__(self, content: str = "none") -> None:
        if content not in ("hash", "none"):
            raise UsageError(f"content={content!r}", hint='private() takes "hash" or "none"')
        self.content = content
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> private:
        self._tokens.append(_block().set(self.content))
        return self

    def __exit__(self, *exc: object) -> None:
        for token in self._tokens[::-1]:
            try:
                _block().reset(token)
            except (ValueError, RuntimeError):
                continue  # entered by another thread or task, or in a context that is gone
            self._tokens.remove(token)
            return
        del self._tokens[-1:]  # a generator's block that ends in another context than it began in


def _block() -> ContextVar[str]:
    global private_block
    if private_block is None:
        with import_lock:
            from _contextvars import ContextVar

            if private_block is None:
                private_block = ContextVar("reenact_content", default="full")
    return private_block


def effective(content: str) -> str:
    """Return the stricter of the recorder's policy and the block's."""
    if private_block is None:
        return content
    block = private_block.get()
    return block if _RANK[block] > _RANK[content] else content


def withhold(name: str, plain: Any, content: str) -> Any:
    """Return one field of an event with content replaced by digests or sizes."""
    if name == "error" and isinstance(plain, dict):
        return {key: _part_of_error(key, item, content) for key, item in plain.items()}
    if name == "body" and isinstance(plain, dict):
        return {key: _part_of_body(key, item, content) for key, item in plain.items()}
    return _part(name, plain, content)


def _part(name: str, item: Any, content: str) -> Any:
    """Numbers, and short texts under the name of a name, reveal no content."""
    if item is None or isinstance(item, (bool, int, float)):
        return item
    if name in KEPT_NAMES and isinstance(item, str) and len(item) <= MAX_LABEL:
        return item.partition("?")[0] if name == "url" else item
    if name == "usage" and isinstance(item, dict):
        return {key: _part(name, each, content) for key, each in item.items()}
    return _token(item, content)


def _part_of_body(key: str, item: Any, content: str) -> Any:
    """Each message apart, so that histories still compare."""
    if isinstance(item, list):
        return [_token(element, content) for element in item]
    return _part(key, item, content)


def _part_of_error(key: str, item: Any, content: str) -> Any:
    if key == "frames" and isinstance(item, list):
        return [_part("where", frame, content) for frame in item]
    return _part(key, item, content)


def _token(value: Any, content: str) -> dict[str, Any]:
    with import_lock:
        from hashlib import blake2b

    data = dumps(value).encode("ascii")
    if content == "none":
        return {"$none": True, "bytes": len(data)}
    return {"$hash": "blake2b:" + blake2b(data, digest_size=16).hexdigest(), "bytes": len(data)}
