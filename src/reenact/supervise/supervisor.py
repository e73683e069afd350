"""The parent half of ``reenact run``: begins the run, starts the agent, and writes how it ended.

The agent is a process of its own with our streams, our terminal and our group. It takes over the run whose
first line was written for it; when it is dead its writer is nobody's, and we complete the last line.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..capture import guard
from ..capture.front.options import Options
from ..capture.recorder.recorder import Recorder
from ..capture.runs.location import (
    MAIN_VARIABLE,
    RUN_VARIABLE,
    announcement,
    default_folder,
    git_commit,
    in_folder,
    start_fields,
)
from ..capture.seams.coverage import begins_without_us
from ..capture.workspace import RESTORE_PATIENCE_S, SNAPSHOT, TREE, VARIABLE, WAITS, ask, report
from ..lines import new_id
from ..totals import Totals
from .signals import WAITED_FOR, Relay, handles

if TYPE_CHECKING:
    from .workspace.keeper import Keeper

# How many processes of our control group the kernel has killed for memory.


def oom_kills(mounted: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int | None:
    """Return the count so far, for version 2 or 1 of control groups; None if unknown."""
    try:
        with open(own, encoding="utf-8") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file if line.count(":") >= 2]
    except (OSError, ValueError):
        return None
    for _, controllers, path in groups:
        if controllers == "":
            places = [(mounted, path, "memory.events"), (mounted, "/", "memory.events")]
        elif "memory" in controllers.split(","):
            root = os.path.join(mounted, "memory")
            places = [(root, path, "memory.oom_control"), (root, "/", "memory.oom_control")]
        else:
            continue
        for root, group, name in places:  # inside a container the group's path is often not there
            count = _count(os.path.join(root, group.lstrip("/"), name))
            if count is not None:
                return count
    return None


def _count(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
    except (OSError, ValueError, IndexError):
        return None


BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")
OFF_VARIABLE = "REENACT_OFF"
NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""What a shell answers where a command cannot be started."""


class Supervised:
    """One agent: what to start, and the run it is recorded as."""

    def __init__(
        self,
        command: list[str],
        name: str,
        meta: dict[str, Any],
        variables: dict[str, str],
        head: dict[str, Any] | None = None,
        workspace: str | None = None,
        restored_from: str | None = None,
        *,
        must_join: bool = False,
    ) -> None:
        self.command = command
        self.called = command[0]
        """The program as it was typed: what a shell passes to it, and what its messages print."""
        self.name = name
        self.meta = meta
        self.variables = variables
        self.head = head or {}
        """Further fields of its first line."""
        self.run_id = new_id(16)
        self.w = new_id(4)
        self.path = in_folder(default_folder(), name, self.run_id)
        self.workspace = workspace
        """The folder that snapshots are taken of."""
        self.restored_from = restored_from
        """The repository of another run's snapshots; the first is taken when one of them was restored."""
        self.must_join = must_join
        """An agent that is answered must not run if it cannot be: it would call models and tools for real."""
        self.overseer: Callable[[], int | None] | None = None
        """Asked every second, while the agent runs, for a signal to send it."""
        self.handled_stop = False
        """True if it was sent SIGTERM and had a handler for it."""
        self.exit = 0
        """Its exit code, or minus the signal that ended it."""
        self.status = "unknown"
        self.totals = Totals()
        self.unseen: list[dict[str, Any]] = []
        """What its processes could not see."""
        self.tool_uses: dict[str, int] = {}
        """How many tool uses the responses had (``total``), and how many have a record (``recorded``)."""

    def run(self) -> None:
        """Start the agent and wait for its end; what is left of the run is complete then."""
        killed_before = oom_kills()
        began = time.monotonic()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
        children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody would tell us how it ended
        keeper = self._start_keeper()
        pid = os.fork()
        if pid == 0:
            self._become_agent(mask, children)
        _let_go_of_streams()
        peak = self._wait(pid)
        ended = time.monotonic()
        if keeper is not None:
            keeper.stop()
        known: dict[str, Any] = {
            "exit": self.exit,
            "duration_ms": round((ended - began) * 1000, 3),
            "peak_bytes": peak,
        }
        killed = (oom_kills() or 0) - (killed_before or 0)
        if killed > 0:
            known["oom_kills"] = killed
        alone = begins_without_us(self.command)
        if alone:
            known["unseen"] = [{"what": "process", "command": alone}]
        if self.is_recorded:
            from .run_end import complete_end  # reads traces, which is not needed to start an agent

            with guard.Swallowing("write how the agent ended"):
                self.status, self.totals, self.unseen, self.tool_uses = complete_end(
                    self.path, self.run_id, self.w, known, handled_stop=self.handled_stop
                )

    def _start_keeper(self) -> Keeper | None:
        """Begin to keep the workspace; without one the agent runs all the same."""
        if self.workspace is None:
            return None
        from .workspace.keeper import Keeper  # loads subprocess and sockets
        from .workspace.snapshots import Shadow, repository_of

        with guard.Swallowing("keep the workspace"):
            shadow = Shadow(repository_of(self.path), self.workspace, [os.path.dirname(self.path)])
            keeper = Keeper(shadow, self.restored_from)
            self.variables = {**self.variables, **keeper.start()}
            return keeper
        return None

    @property
    def is_recorded(self) -> bool:
        """False if the run could not be begun, which was reported then."""
        return os.path.exists(self.path)

    def _become_agent(self, mask: Any, children: Any) -> NoReturn:
        """In the forked process: write the first line, and be the agent from then on."""
        try:
            joining = self._joining()
            if self.must_join and OFF_VARIABLE in joining:
                os._exit(NOT_EXECUTABLE)
            env = {**os.environ, **self.variables, **joining}
            defaults = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores them, and what is ignored stays so
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                defaults.append(signal.SIGINT)
            for number in defaults:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, children)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execve(self.command[0], [self.called, *self.command[1:]], env)  # noqa: S606
        except BaseException as exc:
            guard.tell("start", f"{self.command[0]} cannot be started ({guard.explain(exc)}).")
            os._exit(NOT_FOUND if isinstance(exc, FileNotFoundError) else NOT_EXECUTABLE)

    def _joining(self) -> dict[str, str]:
        """Return the variables by which the agent joins the run, or is left alone."""
        with guard.Swallowing("begin a run"):
            folder = os.path.dirname(self.path)
            if os.path.isdir(folder):
                return self._begin()
            guard.tell(f"folder:{folder}", f"{folder} is not a folder; nothing is recorded.")
        return {OFF_VARIABLE: "1"}

    def _begin(self) -> dict[str, str]:
        """Write ``run.start`` in the agent's name."""
        head = start_fields(
            self.name,
            Options(meta=self.meta or None),
            command=self.command,
            cwd=os.getcwd(),
            git=git_commit(),
            **self._first_snapshot(),
            **self.head,
        )
        # Kept: a recorder that is dropped ends its run.
        recorder = self._recorder = Recorder(self.path, Options(), run_id=self.run_id, head=head)
        recorder.begin_writer(self.w)
        recorder.start()
        if recorder.lost:  # reported already: the agent runs as if we were not there
            return {OFF_VARIABLE: "1"}
        main = f"{os.getpid()} {os.path.getsize(self.path)}"
        return {**variables_to_join(recorder), MAIN_VARIABLE: main}

    def _first_snapshot(self) -> dict[str, Any]:
        """Return the fields about the workspace as the agent finds it."""
        if self.workspace is None:
            return {}

        place = {"workspace_dir": os.path.realpath(self.workspace)}
        if VARIABLE not in self.variables:  # reported already
            return place
        try:
            os.environ[VARIABLE] = self.variables[VARIABLE]  # of a process that is about to be the agent
            word, detail = ask(SNAPSHOT, RESTORE_PATIENCE_S)
        except OSError as exc:
            word, detail = "", guard.explain(exc)
        if word == TREE:
            return {"workspace": detail, **place}
        if word != WAITS:
            report(detail)
        return place

    def _wait(self, agent: int) -> int:
        """Pass signals on until the agent has ended; returns the most memory it had, in bytes."""
        relay = Relay()
        while True:
            number = self._next_signal(agent)
            if number != signal.SIGCHLD:
                if number == signal.SIGTERM:
                    self.handled_stop = self.handled_stop or handles(agent, number)
                relay.pass_on(number, agent)
                continue
            while True:  # as process 1 we bury whatever was orphaned, too
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == agent:
                    self.exit = os.waitstatus_to_exitcode(status)
                    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
                if pid == 0:
                    break

    def _next_signal(self, agent: int) -> int:
        """Wait for a signal; meanwhile the overseer, if there is one, may send the agent one of its own."""
        if self.overseer is None or not hasattr(signal, "sigtimedwait"):
            return signal.sigwait(WAITED_FOR)
        while (came := signal.sigtimedwait(WAITED_FOR, 1.0)) is None:
            number = self.overseer()
            if number is not None:
                os.kill(agent, number)
        return came.si_signo


def variables_to_join(recorder: Recorder) -> dict[str, str]:
    """Return the variables by which a Python that is started joins a run."""
    old = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": f"{BOOTSTRAP}{os.pathsep}{old}" if old else BOOTSTRAP,
        RUN_VARIABLE: announcement(recorder.run_id, recorder.w, recorder.run_stem),
    }


def _let_go_of_streams() -> None:
    """Whoever reads the agent's output must see its end when the agent closes it, not when we end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
    try:
        os.fstat(2)
    except OSError:  # closed: the next descriptor must not become somebody's stderr
        os.dup2(nowhere, 2)
    if nowhere > 2:
        os.close(nowhere)


def end_like(code: int) -> int:
    """Return an exit code, or end by the signal that it stands for."""
    if code >= 0:
        return code

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    number = -code
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 - code  # process 1 cannot be ended by a signal of its own
