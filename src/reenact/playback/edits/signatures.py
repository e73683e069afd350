"""Signed thinking: valid only for the model that wrote it and the conversation before it.

After a change in the conversation, or for another model, a provider may reject it; so it is removed there and
kept byte for byte everywhere else.
"""

from __future__ import annotations

from typing import Any

from ...wire.messages import unsigned
from ...wire.pairing import is_models
from .cut_request import digest


def is_signed(message: Any) -> bool:
    """True if a message holds signed or encrypted thinking."""
    return unsigned(message) is not message


def stripped(messages: list[Any], stale: set[bytes], provider: str | None) -> list[Any]:
    """Return the messages, without the signed thinking of those with a ``stale`` digest."""
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
            # The provider rejects an item with an id but no reasoning; without the id it accepts it.
            kept.append({key: value for key, value in message.items() if key != "id"})
            continue
        bare = False
        kept.append(message)
    return kept


def _is_item(message: Any, provider: str | None) -> bool:
    return provider == "openai-responses" and is_models(message)
