"""What a user has not allowed yet, collected before anything starts: one refusal, one command that allows it.

``replay``, ``fork``, ``test`` and fixtures ask here, so that no command finds out about the second thing only
after the user has allowed the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import NotAllowed

LIVE_TOOLS, STALE_WORLD, REBASE, YES = "--live-tools", "--stale-world", "--rebase", "--yes"
ALL = "all"
"""What ``--live-tools`` takes in place of names."""
_IN_PYTHON = {STALE_WORLD: "stale_world=True", REBASE: "rebase=True", YES: "yes=True"}


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a run needs to be allowed."""

    why: str
    """What would happen."""
    flag: str
    tools: tuple[str, ...] = ()
    """The names that ``--live-tools`` takes."""
    hint: str = ""
    """What else the user can do about it."""


def refuse(needs: Iterable[Need | None], *, instead: str = "", also: Sequence[str] = ()) -> None:
    """Raise NotAllowed for all that is needed; nothing happens if nothing is.

    ``instead`` is a way that needs no permission, ``also`` are flags without which the command would
    probably fail later.
    """
    found = [need for need in needs if need is not None]
    if not found:
        return
    tools = sorted({name for need in found for name in need.tools})
    flags = dict.fromkeys([*(need.flag for need in found), *also])
    hints = dict.fromkeys(text for text in (*(need.hint for need in found), instead) if text)
    raise NotAllowed(
        "\n".join(dict.fromkeys(need.why for need in found)),
        flags=tuple(word for flag in flags for word in _words(flag, tools)),
        in_python=", ".join(_argument(flag, tools) for flag in flags),
        advice="; ".join(hints),
    )


def _words(flag: str, tools: Sequence[str]) -> list[str]:
    return [flag, ",".join(tools)] if flag == LIVE_TOOLS else [flag]


def _argument(flag: str, tools: Sequence[str]) -> str:
    return f"live_tools={tools!r}" if flag == LIVE_TOOLS else _IN_PYTHON[flag]
