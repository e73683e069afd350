"""Signed thinking: what a model thought is bound to the model and to what it saw.

Behind a change in the conversation, and for another model, a provider may refuse it; so it is taken out there
and stays as it is, to the byte, everywhere else.
"""

from __future__ import annotations

from typing import Any

from ...wire.messages import unsigned
from ...wire.pairing import is_models
from .cut_request import digest


def is_signed(message: Any) -> bool:
    """True if a message holds thinking that is signed or sealed."""
    return unsigned(message) is not message


def stripped(messages: list[Any], stale: set[bytes], provider: str | None) -> list[Any]:
    """Return the messages, those whose digest is ``stale`` without their signed thinking; else the same."""
    if not stale or not any(is_signed(each) and digest(each) in stale for each in messages):
        return messages
    kept: list[Any] = []
    bare = False
    for message in messages:
        new = unsigned(message)
        if new is not message and digest(message) in stale:
            bare = True
            if new is not None:
                kept.append(new)
            continue
        if bare and _is_item(message, provider):
            # An item that names itself is refused without the reasoning it came with; unnamed it is taken.
            kept.append({key: value for key, value in message.items() if key != "id"})
            continue
        bare = False
        kept.append(message)
    return kept


def _is_item(message: Any, provider: str | None) -> bool:
    return provider == "openai-responses" and is_models(message)
