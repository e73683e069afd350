"""A program in a process of its own without the start of one: forked from a process that has imported what it needs.

To start an interpreter and to import us costs more than most commands do, and the suite types hundreds of them.
The same goes for pytest, and for scripts that import httpx. Each kind is started as a shell would, too: the first
one in the first worker of the suite.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("reenact"))
PATIENCE_S = 300
READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "REENACT_RUN", "REENACT_OFF")
"""Variables that an interpreter looks at when it starts: who gives one needs a start."""
IMPORTED = ("cli", "tracefile", "debugger", "playback", "wire")

Done = subprocess.CompletedProcess[bytes]


def do(words: list[str], cwd: object, env: dict[str, str], *, session: bool = False) -> Done:
    """Do a command; returns how it ended and what it printed."""
    return _do("command", [COMMAND, *words], words[0] if words else "", cwd, env, session=session)


def do_pytest(words: list[str], cwd: object, env: dict[str, str]) -> Done:
    """Run pytest; the folder it starts in is not on the path."""
    return _do("pytest", [sys.executable, "-P", "-m", "pytest", *words], "", cwd, env, session=False)


def do_script(path: Path, words: list[str], env: dict[str, str]) -> Done:
    """Run a Python script that imports httpx, in its folder."""
    return _do("script", [sys.executable, str(path), *words], path.name, path.parent, env, session=True)


def _do(
    program: str, command: list[str], kind: str, cwd: object, env: dict[str, str], *, session: bool
) -> Done:
    at_start = frozenset(pair for pair in env.items() if pair[0].startswith(READ_AT_START))
    key = (program, at_start)
    is_tried = (program, kind) in _begun or not _IS_FIRST_WORKER
    if is_tried and key in _begun:  # for one command alone a process that forks is not worth its start
        if key not in _forkers:
            _forkers[key] = Forker(program, env)
        try:
            return _forkers[key].run(command, cwd, env, session=session)
        except BaseException:
            _forkers.pop(key).kill()  # what it would say next is the end of this one
            raise
    _begun.update([(program, kind), key])
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, timeout=PATIENCE_S,
        start_new_session=session, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def type_in(
    words: Iterable[object], cwd: object, env: dict[str, str], *, session: bool = False
) -> subprocess.CompletedProcess[str]:
    """Do a command whose output is text."""
    done = do(list(map(str, words)), cwd, env, session=session)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


_IS_FIRST_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
_begun: set[tuple[str, object]] = set()
_forkers: dict[object, Forker] = {}


class Forker:
    """A process that forks, until the other end of its socket is closed."""

    def __init__(self, program: str, env: dict[str, str]) -> None:
        self._asks, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, __file__, program, str(other.fileno())], env=env, pass_fds=[other.fileno()],
                # Pipes as those that its forks will have: streams are made for what they are on.
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip

        atexit.register(self._end)

    def _end(self) -> None:
        self._asks.close()
        self._process.communicate()

    def kill(self) -> None:
        atexit.unregister(self._end)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def run(self, command: list[str], cwd: object, env: dict[str, str], *, session: bool) -> Done:
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        with tempfile.TemporaryFile("w+") as request:
            json.dump(
                {"command": command, "cwd": str(cwd or os.getcwd()), "env": env, "session": session}, request
            )
            request.seek(0)
            socket.send_fds(self._asks, [b"?"], [request.fileno(), to_out, to_err])
        os.close(to_out)
        os.close(to_err)
        printed = self._read(out, err)
        return Done(command, int(self._asks.recv(20)), *printed)

    def _read(self, *pipes: int) -> list[bytes]:
        """Return all that comes through the pipes until nobody has their other ends."""
        came = dict.fromkeys(pipes, b"")
        until = time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as waiting:
            for pipe in pipes:
                waiting.register(pipe, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(until - time.monotonic())
                if not ready and time.monotonic() > until:
                    raise AssertionError(f"the command hangs, and has printed {came}")
                for key, _ in ready:
                    more = os.read(key.fd, 1 << 16)
                    came[key.fd] += more
                    if not more:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
        return list(came.values())


def serve(connection: socket.socket) -> None:
    """Fork for each command; only the fork returns, and is what a start would have made of it."""
    while True:
        message, fds, _, _ = socket.recv_fds(connection, 1, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            connection.close()
            become(*fds)
            return
        for fd in fds:
            os.close(fd)
        connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become(request: int, out: int, err: int) -> None:
    with os.fdopen(request) as file:
        options = json.load(file)
    for fd, standard in ((out, 1), (err, 2)):
        os.dup2(fd, standard)
        os.close(fd)
    if options["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(options["env"])
    os.chdir(options["cwd"])
    sys.argv = options["command"]


def _import_all() -> None:
    for name in IMPORTED:
        package = importlib.import_module(f"reenact.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def _command() -> Callable[[], int]:
    _import_all()
    from reenact.cli.main import main

    return main


def _pytest() -> Callable[[], int]:
    for name in ("asyncio", "httpx", "reenact.testing", "reenact.pytest_plugin"):
        importlib.import_module(name)
    import pytest

    return lambda: int(pytest.main(sys.argv[4:]))


def _script() -> Callable[[], None]:
    for name in ("asyncio", "httpx"):
        importlib.import_module(name)

    def run() -> None:
        del sys.argv[0]
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")

    return run


PROGRAMS = {"command": _command, "pytest": _pytest, "script": _script}
"""Each imports what the program needs, and returns the program."""


def _serve() -> None:
    del sys.path[0]  # the folder of this file, which the program would not have there
    program = PROGRAMS[sys.argv[1]]()
    serve(socket.socket(fileno=int(sys.argv[2])))
    code = program()
    if code is None:
        return  # it ends as Python ends a script
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to take down all that was imported for it costs four times what most commands do


if __name__ == "__main__":
    _serve()
