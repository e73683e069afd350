"""Nothing happens twice: what a re-enacted agent would do to the world outside is refused, and told.

An audit hook: it sees what Python code asks of the interpreter. What a C extension does by itself, and what
a program does that was started before, it cannot see. Connections of the agent end the run, since clients
would try them again; those that a library makes by itself fail. Files and programs are refused as on a
read-only system, with a PermissionError.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Container, Iterable
from threading import Lock
from types import FrameType
from typing import Any

from ...capture.calls.failure import is_agents
from ...capture.seams.coverage import says_to_ignore_us
from ...errors import Diverged
from . import live_servers
from .report import Refused

# Who asks for something that a re-enacted agent must not do: told by the frames at hand.

_LIBRARIES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_STDLIB = os.path.dirname(os.__file__) + os.sep
_LOOKING = tuple(_STDLIB + name for name in ("platform.py", "uuid.py", os.path.join("ctypes", "util.py")))
"""Modules that start programs only to look around."""
_WORKERS = (os.path.join("concurrent", "futures"), os.path.join("anyio", "_backends"))
"""Threads that work for whoever waits."""
_PYTHONS = ("python", "pypy")
_BOOTSTRAP = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "supervise", "bootstrap"
)
_WATCHING = (__file__,)


def frames() -> Iterable[FrameType]:
    """Return the frames that led here, the nearest first, without those of whoever looks."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename not in _WATCHING:
            yield frame
        frame = frame.f_back


def is_mcp_server() -> bool:
    """True if a session of the MCP library starts its server: what is asked of that is answered here."""
    place = os.path.join("mcp", "client", "stdio")
    return any(place in frame.f_code.co_filename for frame in frames())


def is_library(name: str) -> bool:
    """True for a file of a package that is installed."""
    return any(part in name for part in _LIBRARIES)


def is_librarys_folder(path: str) -> bool:
    """True where libraries keep what is theirs: caches, and small databases as CrewAI's."""
    home, known = os.path.expanduser("~"), os.environ.get
    folders = [
        known("XDG_CACHE_HOME") or os.path.join(home, ".cache"),
        known("XDG_DATA_HOME") or os.path.join(home, ".local", "share"),
        known("XDG_STATE_HOME") or os.path.join(home, ".local", "state"),
    ]
    return any(f"{path}{os.sep}".startswith(os.path.realpath(each) + os.sep) for each in folders)


def is_librarys_own() -> bool:
    """True if a library asks unbidden, in a thread of its own or while it is imported: reports, price lists.

    It gets what it would get from a network that is down, for which such code is made.
    """
    for frame in frames():
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return True
        if is_agents(name) or any(part in name for part in _WORKERS):
            return False
    return True


def only_looks() -> bool:
    """True if Python itself asks what machine this is, as SDKs do for their headers: ``uname -p``."""
    for frame in frames():
        name = frame.f_code.co_filename
        if name in _LOOKING:
            return True
        if not name.startswith(_STDLIB):
            return False
    return False


def is_guarded_python(args: tuple[Any, ...]) -> bool:
    """True if a Python is started that begins as this one did: it is answered and guarded itself."""
    program, words, _, env = args
    try:
        command = [os.fsdecode(word) for word in words] if isinstance(words, list | tuple) else []
    except TypeError:
        return False
    if not is_python(program) or says_to_ignore_us(command):
        return False
    known = os.environ if env is None else env
    return "REENACT_REPLAY" in known and _BOOTSTRAP in known.get("PYTHONPATH", "").split(os.pathsep)


def is_python(program: Any) -> bool:
    """True if a program is a Python, by its name."""
    try:
        return os.path.basename(os.fsdecode(program)).startswith(_PYTHONS)
    except TypeError:
        return False


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES = ("/dev/null", "/dev/tty", "/dev/ptmx", "/dev/std", "/dev/fd/", "/dev/pts/")
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LONGEST = 200
_CHANGES = {
    "os.remove": "remove", "os.rmdir": "remove", "os.mkdir": "make", "os.chmod": "change",
    "os.chown": "change", "os.truncate": "change", "os.utime": "change", "os.setxattr": "change",
    "os.removexattr": "change", "os.rename": "rename", "os.link": "link", "os.symlink": "link",
    "shutil.rmtree": "remove", "sqlite3.connect": "open",
}  # fmt: skip
_TO_A_SECOND = ("os.rename", "os.link", "os.symlink")
_FOLDER_DESCRIPTOR = {
    "os.remove": 1, "os.rmdir": 1, "os.mkdir": 2, "os.chmod": 2, "os.chown": 3, "os.utime": 3,
}  # fmt: skip
"""At which place of its arguments an event has the descriptor of the folder that a path is told from."""
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")


_WITH_WORDS = ("subprocess.Popen", "os.exec", "os.posix_spawn")


_on_watch: Guard | None = None
_hooked = False
"""An audit hook cannot be taken out again: there is one, and it asks whoever is on watch."""


class Guard:
    """Watches over one process. ``tell`` hears of what was refused: ``what``, ``where``, ``by``.

    ``raised`` is what a connection ends in, ``allowing`` says how to have files and programs open.
    ``models`` are ports of this machine at which the recorded model listens: who comes there has not asked
    the recording, because nobody listens to the library that was used. ``servers`` is where MCP servers that
    are started are written down (``servers``), ``is_free`` says that all may happen for good. Of a guard that
    is relaxed ``pythons_must_join`` refuses to start a Python that would not be answered.
    """

    def __init__(
        self,
        folders: Iterable[str],
        *,
        is_relaxed: bool,
        tell: Callable[[Refused], None],
        raised: Callable[[str], BaseException] = Diverged,
        allowing: str = "allow tools to act with --live-tools",
        models: Container[object] = (),
        servers: str | None = None,
        is_free: Callable[[], bool] | None = None,
        pythons_must_join: bool = False,
    ) -> None:
        self._folders = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self._tell = tell
        self._raised = raised
        self._allowing = allowing
        self._models = models
        self._servers = servers
        self._is_free = is_free or (lambda: False)
        self.hosts: set[str] = set()
        """Where connections may go, besides this machine."""
        self._lock = Lock()
        self._openings = 0
        checks: dict[str, Callable[[str, tuple[Any, ...]], None]] = {
            "socket.connect": self._connects, "socket.sendto": self._connects,
            "socket.sendmsg": self._connects, "socket.getaddrinfo": self._looks_up,
            "socket.gethostbyname": self._looks_up,
        }  # fmt: skip
        if not is_relaxed:
            checks |= dict.fromkeys(_CHANGES, self._changes) | dict.fromkeys(_PROGRAMS, self._starts)
            checks["open"] = self._opens
        elif pythons_must_join:
            checks |= dict.fromkeys(_PROGRAMS, self._starts_python)
        self._checks = checks

    def begin(self) -> None:
        """Watch over this process from now on."""
        global _on_watch, _hooked
        _on_watch = self
        if not _hooked:
            _hooked = True
            sys.addaudithook(_hook)

    def end(self) -> None:
        """Let everything happen again."""
        global _on_watch
        if _on_watch is self:
            _on_watch = None

    def open(self, more: int) -> None:
        """Let everything happen while somebody may act: 1 when that begins, -1 when it ends."""
        with self._lock:
            self._openings += more

    @property
    def is_open(self) -> bool:
        """True while somebody may act."""
        return self._openings > 0

    def look_at(self, event: str, args: tuple[Any, ...]) -> None:
        """Raise if what is about to happen must not."""
        check = self._checks.get(event)
        if check is not None and not self._openings and not self._is_free():
            check(event, args)
        elif event == "subprocess.Popen" and self._servers is not None and is_mcp_server():
            live_servers.note(self._servers, args[1])  # started for a tool that may run

    def _connects(self, event: str, args: tuple[Any, ...]) -> None:
        address = args[1] if len(args) > 1 else None
        if not isinstance(address, tuple) or not address:
            return
        if not is_here(address[0]):
            if not all(map(is_here, self.hosts)):  # which addresses they have is not known
                return
            self._refuse_connection(str(address[0]))
        elif len(address) > 1 and address[1] in self._models:
            self._refuse_connection(f"{address[0]}:{address[1]}, the recorded model, past what would answer")

    def _looks_up(self, event: str, args: tuple[Any, ...]) -> None:
        host = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
        if host in self.hosts:
            return
        is_name = type(host) is str and any(char.isalpha() for char in host) and ":" not in host
        if is_name and not is_here(host) and host != os.uname().nodename:
            self._refuse_connection(host)

    def _refuse_connection(self, host: str) -> None:
        unbidden = is_librarys_own()
        what = self._refused(f"connect to {host}", by_agent=not unbidden)
        why = what + ": a replay makes no connections"
        if unbidden:
            raise ConnectionRefusedError(errno.ECONNREFUSED, why)
        raise self._raised(why)

    def _opens(self, event: str, args: tuple[Any, ...]) -> None:
        path, _, flags = args
        if type(flags) is int and flags & _WRITING and not self._may_change(path, None, is_followed=True):
            self._refuse(f"write {_shown(path)}")

    def _changes(self, event: str, args: tuple[Any, ...]) -> None:
        path = args[1] if event in _TO_A_SECOND else args[0]
        at = _FOLDER_DESCRIPTOR.get(event)
        folder = args[at] if at is not None and len(args) > at else None
        both = [path, args[0]] if event == "os.rename" else [path]
        if event == "sqlite3.connect" and _is_no_file(path):
            return
        if event == "os.mkdir" and type(path) is str and os.path.isdir(path):
            return  # it is there: the answer will be that
        is_followed = _CHANGES[event] in ("change", "open")
        for each in both:
            if not self._may_change(each, folder, is_followed=is_followed):
                self._refuse(f"{_CHANGES[event]} {_shown(each)}")

    def _starts(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            if is_mcp_server():
                if self._servers is not None:
                    live_servers.note(self._servers, args[1])
                return
            if is_guarded_python(args) or only_looks():
                return
        if event in ("os.exec", "os.posix_spawn") and is_guarded_python((args[0], args[1], None, args[2])):
            return
        command = args[1] if len(args) > 1 and event != "os.system" else args[0]
        self._refuse(f"run {_shown(command)}")

    def _starts_python(self, event: str, args: tuple[Any, ...]) -> None:
        """Of all programs refuse only a Python that does not load us: it would call models for real."""
        if event not in _WITH_WORDS or is_mcp_server():
            return
        program, words, env = (args[0], args[1], args[3 if event == "subprocess.Popen" else 2])
        program = program or words[0]
        if is_python(program) and not is_guarded_python((program, words, None, env)):
            what = self._refused(f"run {_shown(words)}", by_agent=True)
            raise PermissionError(
                f"{what}: this Python does not load reenact, so nothing would answer it. Start it without"
                " -I, -E and -S, with PYTHONPATH and the REENACT_ variables of os.environ in its environment"
            )

    def _may_change(self, path: Any, folder: Any, *, is_followed: bool = False) -> bool:
        """True if nothing outside is changed; ``is_followed``: a link at the end of the path is, too."""
        if type(path) is int:
            return True  # a descriptor: its opening was looked at
        try:
            text = os.fsdecode(path)
            if type(folder) is int and folder >= 0 and not os.path.isabs(text):
                text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
            text = os.path.abspath(text)
            parent = os.path.realpath(os.path.dirname(text))
            whole = os.path.join(parent, os.path.basename(text))
            whole = os.path.realpath(whole) if is_followed else whole
        except (TypeError, ValueError, OSError):
            return False
        if text.startswith(_DEVICES) or whole.startswith(self._folders) or whole + os.sep in self._folders:
            return True
        if "__pycache__" in whole.split(os.sep) or whole.endswith(".pyc"):
            return True
        asking = _nearest()
        return asking.startswith(_OURS) or (is_library(asking) and is_librarys_folder(whole))

    def _refuse(self, what: str) -> None:
        raise PermissionError(
            self._refused(what, by_agent=is_agents(_nearest(is_past_ours=True)))
            + ": a replay changes nothing. Decorate what does it with"
            f" @tap.tool to have it answered, or {self._allowing}"
        )

    def _refused(self, what: str, *, by_agent: bool) -> str:
        """Tell of what is refused, and return the beginning of the message."""
        where = agents_place()
        self._tell(Refused(what, where, "agent" if by_agent else "library"))
        return f"reenact refused to {what}" + (f" ({where})" if where else "")


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _on_watch is not None:
        _on_watch.look_at(event, args)


def is_here(host: object) -> bool:
    """True for an address of this very machine."""
    text = str(host)
    return text.startswith("127.") or text in ("::1", "localhost", "0.0.0.0", "", "::", "::ffff:127.0.0.1")  # noqa: S104


def _nearest(*, is_past_ours: bool = False) -> str:
    """Return the file of who asks, past Python's own modules: the agent's, a library's or ours."""
    for frame in frames():
        name = frame.f_code.co_filename
        if name.startswith(_OURS):
            if is_past_ours:  # a seam that only passes the call on
                continue
            return name
        if is_agents(name) or is_library(name):
            return name
    return ""


def agents_place() -> str | None:
    """Return where in the agent's own code this comes from: ``agent.py:41 in save``."""
    for frame in frames():
        code = frame.f_code
        if is_agents(code.co_filename) and not code.co_filename.startswith("<"):
            return f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
    return None


def _is_no_file(database: Any) -> bool:
    text = os.fsdecode(database) if isinstance(database, str | bytes | os.PathLike) else ""
    return text in (":memory:", "") or (
        text.startswith("file:") and ("mode=ro" in text or "mode=memory" in text)
    )


def _shown(value: Any) -> str:
    text = (
        value
        if type(value) is str
        else " ".join(map(_shown, value))
        if type(value) in (list, tuple)
        else None
    )
    if text is None:
        try:
            text = os.fsdecode(value)
        except TypeError:
            text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
