"""Finds and watches the functions of the tools that responses call; one per process, made by ``install()``.

``REENACT_TOOLS`` (``--tools``) names functions that are not found by themselves, or is ``off``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from weakref import ref

from .. import guard, replay_hook
from ..calls import open_calls
from ..calls.open_calls import OpenUse, close_uses, open_uses
from ..recorder.recorder import Recorder
from . import finding, watching
from .places import places_of

MOST_NAMES = 1_000
NOT_FOUND = "no function of yours has this name; name it with --tools {}=module:function"
TOO_MANY = "the program has too many objects to search; name its function with --tools {}=module:function"


class Finder:
    """Looks for the function of each tool use whose function is not known yet."""

    def __init__(self, places: dict[str, tuple[str, str]]) -> None:
        self._places = places
        """Tools whose function the user names: module and qualified name."""
        self._known: dict[str, list[Any]] = {}
        """References to the functions of each tool."""
        self._searched: set[str] = set()
        """Names that the collector was searched for."""
        self.missing: dict[str, str] = {}
        """Tools that were called and have no watched function, and why."""

    def opened(self, recorder: Recorder, uses: list[OpenUse]) -> None:
        """Watch the functions of tool uses, which are open from now on. Raises only in a replay."""
        with guard.Swallowing("find the functions of tools"):
            for use in uses:
                use.recorder = recorder
            unknown = {use.name: _argument_names(use) for use in uses if not self._is_known(use.name)}
            if unknown:
                self._look_for(unknown)
            open_uses.extend(uses)
        if replay_hook.responder is not None:
            names = [use.name for use in uses]
            replay_hook.responder.unwatched([n for n in names if n in self.missing or n not in self._known])

    def _is_known(self, name: str) -> bool:
        alive = [function for each in self._known.get(name, ()) if (function := each()) is not None]
        return any(watching.is_watched(function) for function in alive)

    def _look_for(self, wanted: dict[str, frozenset[str]]) -> None:
        for name in [name for name in wanted if name in self._places]:
            self._watch_named(name)
            del wanted[name]
        found = finding.in_modules(wanted)
        left = {name: names for name, names in wanted.items() if not found.get(name)}
        is_answered = replay_hook.adapter("tools") is not None  # then nothing may run, and time matters less
        new = {name: names for name, names in left.items() if is_answered or name not in self._searched}
        why = NOT_FOUND
        if new:
            more = finding.by_collector(new)
            if more is None:
                why = TOO_MANY
            else:
                self._searched.update(list(new)[: MOST_NAMES - len(self._searched)])
                found.update(more)
        for name in wanted:
            self._watch(name, found.get(name, []), why)

    def _watch_named(self, name: str) -> None:
        module_name, qualname = self._places[name]
        module = sys.modules.get(module_name)
        if module is None:
            self.missing[name] = f"{module_name} is not imported"
            return
        function = finding.named(name, module, qualname)
        if isinstance(function, str):
            self.missing[name] = function
        else:
            self._watch(name, [function], "")

    def _watch(self, name: str, functions: list[Any], why: str) -> None:
        watched = []
        for function in functions:
            why = watching.watch(function, name)
            if not why:
                watched.append(ref(function))
        if watched:
            self._known[name] = watched
            self.missing.pop(name, None)
        elif len(self.missing) < MOST_NAMES:
            self.missing[name] = why.format(name)


def _argument_names(use: OpenUse) -> frozenset[str]:
    args = json.loads(use.args)
    return frozenset(args) if type(args) is dict else frozenset()


finder: Finder | None = None
_is_hooked = False


def start(named: str) -> Finder:
    """Watch the functions of all tools that responses call from now on; the user names some."""
    global finder, _is_hooked
    if not _is_hooked:
        _is_hooked = True
        os.register_at_fork(after_in_child=open_uses.clear)  # the parent's, who knows when they close
    finder = Finder(places_of(named))
    open_calls.opened_uses = finder.opened
    return finder


def stop() -> None:
    """Give all functions back as they were."""
    global finder
    finder = None
    close_uses(list(open_uses))
    watching.unwatch_all()


def missing() -> dict[str, str]:
    """Return the tools that were called and have no watched function, and why."""
    if finder is None:
        return {}
    return {name: why for name, why in finder.missing.items() if name not in open_calls.recorded_tools}
