"""What a tool does to the world: declared by its author or its server, or by the user in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ..schema import EFFECTS

PURE, READ, WRITE, IRREVERSIBLE = EFFECTS
HARMLESS = (PURE, READ)


def effect_of(name: str | None, declared: object, settings: Mapping[str, str]) -> str | None:
    """Return a tool's effect: from the user's settings, else as declared; None if unknown.

    An unknown word counts as not declared.
    """
    setting = effect_in_settings(name, settings)
    if setting is not None:
        return setting
    return declared if type(declared) is str and declared in EFFECTS else None


def effect_in_settings(name: str | None, settings: Mapping[str, str]) -> str | None:
    """Return what the user's settings say of a tool, by its name or a pattern; None if nothing."""
    tool = name or ""
    if tool in settings:
        return settings[tool]
    return next((effect for pattern, effect in settings.items() if fnmatchcase(tool, pattern)), None)
