"""The model a request asks for, also where the request keeps it from an earlier one."""

from __future__ import annotations

import os
from typing import Any

from ..wire import reading
from ..wire.json_values import string
from .event_source import Shelf
from .requests import base_of

_LARGE = 8 << 20
MAX_LINKS = 10_000
"""Requests followed from base to base; a hostile file must not hold us up."""


def requested_model(
    fields: dict[str, Any], shelf: Shelf, known: dict[str, str | None], *, links: int = MAX_LINKS
) -> str | None:
    """Return the model a request asks for; it follows at most so many ``links`` from base to base.

    ``known`` are the models of other requests by call id; those found on the way are added.
    """
    model = _named(fields)
    if model is not None:
        return model
    base, passed = base_of(fields), dict[str, None]()
    while model is None and base is not None and base not in passed:
        if base in known:
            model = known[base]
            break
        if len(passed) >= links:
            break
        passed[base] = None
        place = shelf.request_place(base)
        got = shelf.fields(place) if place is not None else None
        if got is None:
            break
        model, base = _named(got[0]), base_of(got[0])
    known.update(dict.fromkeys(passed, model))
    return model


def is_large(shelf: Shelf, place: int) -> bool:
    """True if it takes a while to look for a base in the file of a place."""
    try:
        return os.path.getsize(shelf.at(place)[0].path) > _LARGE
    except OSError:
        return True


def _named(fields: dict[str, Any]) -> str | None:
    return reading.model_of(fields.get("body"), fields.get("url")) or string(fields.get("model")) or None
