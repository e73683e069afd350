"""``reenact.install()``: record every call of this process, without a change to its code.

Used by hand, and by every process below ``reenact run``. Waiting for a library costs an import finder; the
modules that record are loaded with the first library.
"""

from __future__ import annotations

import os
import sys

from .. import guard
from ..calls import callers
from ..import_lock import import_lock
from ..runs import exit_and_fork
from .libraries import FRAMEWORKS, SEAMS, THREADS_AND_TASKS, Installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

HOSTS_VARIABLE, HTTP_VARIABLE, TOOLS_VARIABLE = "REENACT_HOSTS", "REENACT_HTTP", "REENACT_TOOLS"
"""``--host``, ``--record-http`` and ``--tools`` of ``reenact run``, for the processes below it."""
TOOLS_OFF = "off"
"""The value of REENACT_TOOLS by which no function is looked for."""
MODELS, ALL = "models", "all"

seams: Seams | None = None
"""The seams of this process, None before ``install()``."""


launch_variables: dict[str, str] = {}
"""Variables that ``reenact run`` set for this process; the agent may have emptied its environment."""


class Seams(Installed):
    """The seams of this process; their watch is made with the first of them, since it takes time to load."""

    def __init__(self, hosts: tuple[str, ...], everything: bool, is_supervised: bool) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.hosts = hosts
        self.is_supervised = is_supervised
        self.everything = everything
        self._has_watch = False
        self._first_caller: callers.Caller | None = None
        self.tools = os.environ.get(TOOLS_VARIABLE, "")
        """Functions of tools that the user names, as ``name=module:qualname,…``."""

    def install(self) -> None:
        """Listen to every module, name callers, and watch the functions of tools."""
        self._first_caller = callers.begin(self._first_caller)
        super().install()
        self._watch_tools()

    def uninstall(self) -> None:
        """Give everything back as it was."""
        super().uninstall()
        callers.stop()
        if self._has_watch:
            with guard.Swallowing("give the functions of tools back"):
                with import_lock:
                    from ..calls import open_calls

                open_calls.opened_uses = None
                finder: Any = sys.modules.get("reenact.capture.tools.finder")
                if finder is not None:
                    finder.stop()

    def _watch_tools(self) -> None:
        """Hear of the first tool use; what looks for its function is loaded then."""
        if not self._has_watch or self.tools == TOOLS_OFF:
            return
        with import_lock:
            from ..calls import open_calls

        def first_uses(recorder: Any, uses: Any) -> None:
            with guard.Swallowing("find the functions of tools"):
                with import_lock:
                    from ..tools import finder

                finder.start(self.tools).opened(recorder, uses)

        open_calls.opened_uses = first_uses

    def patch(self, name: str, module: ModuleType) -> None:
        """Listen to one module."""
        if SEAMS[name] == FRAMEWORKS and self.tools == TOOLS_OFF:
            return
        if not self._has_watch and SEAMS[name] != THREADS_AND_TASKS:
            with import_lock:
                from ..http.watch import Watch
                from ..runs.current import current_recorder

            self.watch = Watch(current_recorder, self.hosts, everything=self.everything)
            self._has_watch = True
            self._watch_tools()
        super().patch(name, module)

    def report_failed(self, name: str, module: ModuleType) -> None:
        """Report that a module is not recorded, unless ``reenact run`` reports it at the end."""
        if not self.is_supervised:
            super().report_failed(name, module)


def install(*, hosts: Iterable[str] = (), record_http: str = MODELS) -> None:
    """Record every model call of this process from now on. Twice is fine; the first settings count.

    ``hosts`` are further hosts that serve models. ``record_http="all"`` records all other traffic, too.
    """
    with import_lock:
        from ...errors import UsageError

    if isinstance(hosts, str) or not all(isinstance(host, str) and host for host in hosts):
        raise UsageError(f"hosts={hosts!r}", hint='hosts is a list of names: hosts=["llm.example.com"]')
    if record_http not in (MODELS, ALL):
        raise UsageError(f"record_http={record_http!r}", hint='record_http is "models" or "all"')
    _install(tuple(hosts), record_http == ALL)


def _install(hosts: tuple[str, ...], everything: bool, is_supervised: bool = False) -> None:
    global seams
    if seams is not None or os.environ.get("REENACT_OFF") == "1":
        return
    seams = Seams(hosts, everything, is_supervised)
    seams.install()
    exit_and_fork.unseen = _unseen


def uninstall() -> None:
    """Give every library back as it was; calls under way are still recorded. Twice is fine."""
    global seams
    if seams is not None:
        seams.uninstall()
        seams = None
        exit_and_fork.unseen = None


def swap(replacement: Seams | None) -> Seams | None:
    """Put other seams in place of the current ones and return those; to restore them, swap them back."""
    global seams
    before = seams
    if before is not None:
        before.uninstall()
    seams = replacement
    if replacement is not None:
        replacement.install()
    exit_and_fork.unseen = _unseen if replacement is not None else None
    return before


def wait_for_libraries(bootstrap: str) -> None:
    """Begin a process below ``reenact run``; called once, before the agent runs."""
    with import_lock:
        import atexit

        from . import coverage

    launch_variables.update((name, os.environ[name]) for name in os.environ if name.startswith("REENACT_"))
    named = os.environ.get(HOSTS_VARIABLE, "").split(",")
    hosts = tuple(host for host in named if host)
    _install(hosts, os.environ.get(HTTP_VARIABLE) == ALL, is_supervised=True)
    if "REENACT_AMBIENT" in os.environ:
        with import_lock:
            from ..ambient import modules

        modules.watch(os.environ[modules.AMBIENT_VARIABLE].split(","))
    coverage.listen(bootstrap)
    _hear_of_an_early_death()
    atexit.register(_report_what_was_unseen)  # the first handler, so the last to run


def _hear_of_an_early_death() -> None:
    """Record the exception a program died of, also where nothing else of it was recorded."""
    before = sys.excepthook

    def died(kind: Any, exc: Any, tb: Any) -> None:
        with guard.Swallowing("record an uncaught exception"):
            with import_lock:
                from ..runs.crashes import died_of
                from ..runs.current import known_process_recorder, process_recorder
                from ..runs.location import is_main_process

            if known_process_recorder() is None and is_main_process():
                died_of(exc, tb, [process_recorder()])
        before(kind, exc, tb)

    sys.excepthook = died


def _unseen() -> list[dict[str, object]]:
    with import_lock:
        from . import coverage

    with guard.Swallowing("report what was not recorded"):
        return coverage.unseen(seams) if seams is not None else []
    return []


def _report_what_was_unseen() -> None:
    """Report from a process that recorded nothing although it should have."""
    with guard.Swallowing("report what was not recorded"):
        if not _unseen():
            return
        with import_lock:
            from ..runs.current import known_process_recorder, process_recorder

        if known_process_recorder() is None:
            recorder = process_recorder()
            recorder.start()
            recorder.exit("unclosed", {})
