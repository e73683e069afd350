"""Blocks side effects of a replayed agent: connections, changes of files, programs. Each is reported.

An audit hook: it sees what Python code does through the interpreter, not what a C extension does on its own
or what a program started before does. A connection by the agent ends the run, since clients would retry it;
one that a library makes on its own fails. Files and programs are refused as on a read-only system, with a
PermissionError.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from threading import Lock
from types import FrameType
from typing import Any

from ...capture.calls.error_fields import is_agents
from ...capture.redact.redactor import Redactor
from ...capture.runs import allowed_programs
from ...capture.seams import coverage
from ...errors import Diverged
from .report import Refused, append

# Find who triggered a blocked operation, from the call stack.

_LIBRARIES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_STDLIB = os.path.dirname(os.__file__) + os.sep
_LOOKING = tuple(_STDLIB + name for name in ("platform.py", "uuid.py", os.path.join("ctypes", "util.py")))
"""Modules that start programs only to inspect the machine."""
_WORKERS = (os.path.join("concurrent", "futures"), os.path.join("anyio", "_backends"))
"""Threads that work on behalf of others."""
_BOOTSTRAP = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "supervise", "bootstrap"
)
_OWN_FRAMES = (__file__,)


def frames() -> Iterable[FrameType]:
    """Return the frames of the call stack, the nearest first, without those of this file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename not in _OWN_FRAMES:
            yield frame
        frame = frame.f_back


def is_mcp_server() -> bool:
    """True if the MCP library is starting a server: its replies come from the recording."""
    place = os.path.join("mcp", "client", "stdio")
    return any(place in frame.f_code.co_filename for frame in frames())


def is_library(name: str) -> bool:
    """True for a file of an installed package."""
    return any(part in name for part in _LIBRARIES)


def is_library_folder(path: str) -> bool:
    """True for folders where libraries keep caches and small databases, such as CrewAI's."""
    home, known = os.path.expanduser("~"), os.environ.get
    folders = [
        known("XDG_CACHE_HOME") or os.path.join(home, ".cache"),
        known("XDG_DATA_HOME") or os.path.join(home, ".local", "share"),
        known("XDG_STATE_HOME") or os.path.join(home, ".local", "state"),
    ]
    return any(f"{path}{os.sep}".startswith(os.path.realpath(each) + os.sep) for each in folders)


def is_background_library() -> bool:
    """True if a library acts on its own, in a thread of its own or on import: telemetry, price lists.

    Its connections fail as on a machine without a network, which such code handles.
    """
    for frame in frames():
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return True
        if is_agents(name) or any(part in name for part in _WORKERS):
            return False
    return True


def is_platform_probe() -> bool:
    """True if Python itself inspects the machine, as SDKs do for their headers: ``uname -p``."""
    for frame in frames():
        name = frame.f_code.co_filename
        if name in _LOOKING:
            return True
        if not name.startswith(_STDLIB):
            return False
    return False


def is_guarded_python(args: tuple[Any, ...]) -> bool:
    """True if a Python is started that loads reenact like this one: it has its own replay and guard."""
    program, words, _, env = args
    try:
        command = [os.fsdecode(word) for word in words] if isinstance(words, list | tuple) else []
    except TypeError:
        return False
    if not is_python(program) or coverage.says_to_ignore_us(command):
        return False
    known = os.environ if env is None else env
    # The command that started this Python may be of another installation than the one in its environment.
    joining = {_BOOTSTRAP, coverage.bootstrap or _BOOTSTRAP}
    return "REENACT_REPLAY" in known and not joining.isdisjoint(known.get("PYTHONPATH", "").split(os.pathsep))


def is_python(program: Any) -> bool:
    """True if a program is a Python, by its name."""
    try:
        return allowed_programs.is_python(os.fsdecode(program))
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
"""The index, among an event's arguments, of the folder descriptor that a path is relative to."""
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")


_WITH_WORDS = ("subprocess.Popen", "os.exec", "os.posix_spawn")


@dataclass(frozen=True, slots=True)
class Listening:
    """The servers of this machine at a moment: a replay must not reach those that it did not start itself."""

    ports: tuple[int, ...]
    """TCP ports; empty where they cannot be read, as on macOS."""
    at: float

    @classmethod
    def now(cls, new_file: str) -> Listening:
        """Return those of this moment.

        The time is that of a new file: a file's times lag behind the clock by some milliseconds, and the
        socket of our own keeper may follow sooner.
        """
        ports = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            try:
                with open(table, encoding="ascii") as file:
                    rows = [line.split() for line in file]
            except OSError:
                continue
            ports |= {int(row[1].rpartition(":")[2], 16) for row in rows[1:] if row[3] == _LISTENS}
        return cls(tuple(sorted(ports)), os.stat(new_file).st_ctime)

    def has_socket(self, path: str) -> bool:
        """True for the path of a Unix socket that was there before; not for that of the system's log."""
        try:
            return not path.startswith("/dev/") and os.stat(path).st_ctime < self.at
        except (OSError, ValueError):  # missing, or without a file
            return False


_LISTENS = "0A"
"""The state of a listening socket in the kernel's tables."""
_active: Guard | None = None
_hooked = False
"""An audit hook cannot be removed: there is one, and it asks the active guard."""


class Guard:
    """Guards one process. ``report`` is called with each blocked operation.

    ``raised`` is the exception for a connection, ``allowing`` the advice on how to allow files and programs.
    ``models`` are ports of this machine where the recorded model listened: a connection there comes from a
    library that is not recorded. ``others`` are the servers that listened on this machine before the replay,
    None if they may be reached. ``servers`` is the file that lists started MCP servers (``is_live_server``),
    ``is_free`` lifts the guard for good. With ``pythons_must_join`` a relaxed guard refuses to start a Python
    that would not load reenact.
    """

    def __init__(
        self,
        folders: Iterable[str],
        *,
        is_relaxed: bool,
        report: Callable[[Refused], None],
        raised: Callable[[str], BaseException] = Diverged,
        allowing: str = "allow tools to act with --live-tools",
        models: Container[object] = (),
        others: Listening | None = None,
        servers: str | None = None,
        is_free: Callable[[], bool] | None = None,
        pythons_must_join: bool = False,
    ) -> None:
        self._folders = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self._report = report
        self._raised = raised
        self._allowing = allowing
        self._models = models
        self._others = None if is_relaxed else others
        self._servers = servers
        self._is_free = is_free or (lambda: False)
        self.hosts: set[str] = set()
        """Hosts that may be reached, besides this machine."""
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
        """Guard this process from now on."""
        global _active, _hooked
        _active = self
        if not _hooked:
            _hooked = True
            sys.addaudithook(_hook)

    def end(self) -> None:
        """Stop guarding."""
        global _active
        if _active is self:
            _active = None

    def open(self, more: int) -> None:
        """Lift the guard while a tool may act: 1 when it starts, -1 when it ends."""
        with self._lock:
            self._openings += more

    @property
    def is_open(self) -> bool:
        """True while a tool may act."""
        return self._openings > 0

    def check(self, event: str, args: tuple[Any, ...]) -> None:
        """Raise if an operation is blocked."""
        checker = self._checks.get(event)
        if checker is not None and not self._openings and not self._is_free():
            checker(event, args)
        elif event == "subprocess.Popen" and self._servers is not None and is_mcp_server():
            _note_server(self._servers, args[1])  # started for a tool that may run

    def _connects(self, event: str, args: tuple[Any, ...]) -> None:
        address = args[1] if len(args) > 1 else None
        if isinstance(address, str | bytes):
            if self._others is not None and self._others.has_socket(os.fsdecode(address)):
                self._refuse_connection(_shown(address))
            return
        if not isinstance(address, tuple) or not address:
            return
        if not is_here(address[0]):
            if not all(map(is_here, self.hosts)):  # the addresses of these hosts are unknown
                return
            self._refuse_connection(str(address[0]))
        elif len(address) > 1 and address[1] in self._models:
            self._refuse_connection(
                f"{address[0]}:{address[1]}, the recorded model, through a library that is not replayed"
            )
        elif self._others is not None and address[1:2] and not any(map(is_here, self.hosts)):
            if address[1] in self._others.ports and event == "socket.connect":
                self._refuse_connection(f"{address[0]}:{address[1]}, a server that ran before")

    def _looks_up(self, event: str, args: tuple[Any, ...]) -> None:
        host = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
        if host in self.hosts:
            return
        is_name = type(host) is str and any(char.isalpha() for char in host) and ":" not in host
        if is_name and not is_here(host) and host != os.uname().nodename:
            self._refuse_connection(host)

    def _refuse_connection(self, host: str) -> None:
        is_background = is_background_library()
        refusal = self._refused(f"connect to {host}", by_agent=not is_background)
        message = refusal + ": a replay makes no connections"
        if is_background:
            raise ConnectionRefusedError(errno.ECONNREFUSED, message)
        raise self._raised(message)

    def _opens(self, event: str, args: tuple[Any, ...]) -> None:
        path, _, flags = args
        if type(flags) is int and flags & _WRITING and not self._may_change(path, None, is_followed=True):
            self._refuse(f"write {_shown(path)}")

    def _changes(self, event: str, args: tuple[Any, ...]) -> None:
        path = args[1] if event in _TO_A_SECOND else args[0]
        at = _FOLDER_DESCRIPTOR.get(event)
        folder = args[at] if at is not None and len(args) > at else None
        both = [path, args[0]] if event == "os.rename" else [path]
        if event == "sqlite3.connect" and _is_not_a_file(path):
            return
        if event == "os.mkdir" and type(path) is str and os.path.isdir(path):
            return  # it exists: mkdir fails by itself
        is_followed = _CHANGES[event] in ("change", "open")
        for each in both:
            if not self._may_change(each, folder, is_followed=is_followed):
                self._refuse(f"{_CHANGES[event]} {_shown(each)}")

    def _starts(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            if is_mcp_server():
                if self._servers is not None:
                    _note_server(self._servers, args[1])
                return
            if is_guarded_python(args) or is_platform_probe():
                return
        if event in ("os.exec", "os.posix_spawn") and is_guarded_python((args[0], args[1], None, args[2])):
            return
        command = args[1] if len(args) > 1 and event != "os.system" else args[0]
        self._refuse(f"run {_shown(command)}")

    def _starts_python(self, event: str, args: tuple[Any, ...]) -> None:
        """Refuse only a Python that does not load reenact: it would call models for real."""
        if event not in _WITH_WORDS or is_mcp_server():
            return
        program, words, env = (args[0], args[1], args[3 if event == "subprocess.Popen" else 2])
        program = program or words[0]
        if is_python(program) and not is_guarded_python((program, words, None, env)):
            refusal = self._refused(f"run {_shown(words)}", by_agent=True)
            raise PermissionError(
                f"{refusal}: this Python does not load reenact, so nothing would answer it. Start it without"
                " -I, -E and -S, with PYTHONPATH and the REENACT_ variables of os.environ in its environment"
            )

    def _may_change(self, path: Any, folder: Any, *, is_followed: bool = False) -> bool:
        """True if the path may be changed; ``is_followed``: the operation follows a link at its end."""
        if type(path) is int:
            return True  # a descriptor: its opening was checked
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
        caller = _nearest()
        return caller.startswith(_OURS) or (is_library(caller) and is_library_folder(whole))

    def _refuse(self, what: str) -> None:
        raise PermissionError(
            self._refused(what, by_agent=is_agents(_nearest(is_past_ours=True)))
            + ": a replay changes nothing. Decorate the function with @tap.tool"
            f" to have it answered, or {self._allowing}"
        )

    def _refused(self, what: str, *, by_agent: bool) -> str:
        """Report a blocked operation, and return the beginning of the message."""
        where = agent_location()
        self._report(Refused(what, where, "agent" if by_agent else "library"))
        return f"reenact refused to {what}" + (f" ({where})" if where else "")


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _active is not None:
        _active.check(event, args)


def is_here(host: object) -> bool:
    """True for an address of this machine."""
    text = str(host)
    is_loopback = text.startswith("127.") and text.isascii() and text.replace(".", "").isdigit()
    return is_loopback or text in ("::1", "localhost", "0.0.0.0", "", "::", "::ffff:127.0.0.1")  # noqa: S104


def _nearest(*, is_past_ours: bool = False) -> str:
    """Return the file of the caller, past Python's own modules: the agent's, a library's or ours."""
    for frame in frames():
        name = frame.f_code.co_filename
        if name.startswith(_OURS):
            if is_past_ours:  # a seam that only passes the call on
                continue
            return name
        if is_agents(name) or is_library(name):
            return name
    return ""


def agent_location() -> str | None:
    """Return the place in the agent's own code: ``agent.py:41 in save``."""
    for frame in frames():
        code = frame.f_code
        if is_agents(code.co_filename) and not code.co_filename.startswith("<"):
            return f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
    return None


def _is_not_a_file(database: Any) -> bool:
    text = os.fsdecode(database) if isinstance(database, str | bytes | os.PathLike) else ""
    return text in (":memory:", "") or (
        text.startswith("file:") and ("mode=ro" in text or "mode=memory" in text)
    )


def _shown(value: Any) -> str:
    """Return a path or a command for a message, without secrets: it reaches terminals and logs of CI."""
    words = [_text(each) for each in value] if isinstance(value, list | tuple) else _text(value)
    cleaned = Redactor().clean(words)
    text = cleaned if isinstance(cleaned, str) else " ".join(cleaned)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _text(value: Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        return repr(value)


# MCP servers started by a fork: they may act once the run is live, since their tools were allowed.
#
# The process that starts a server writes its command to a file; a server recognises itself by its own command
# or that of a parent process.
#

_HIGHEST = 16
"""Parent processes that are looked at."""


def _note_server(path: str, command: Any) -> None:
    """Write the command of a server that is about to start."""
    words = [os.fsdecode(word) for word in command] if isinstance(command, list | tuple) else []
    append(path, json.dumps(words).encode() + b"\n")


def is_live_server(path: str | None) -> bool:
    """True if this process is such a server, or was started by one."""
    if path is None:
        return False
    try:
        with open(path, encoding="utf-8") as file:
            commands = [json.loads(line)[1:] for line in file]
    except FileNotFoundError:
        return False
    return sys.orig_argv[1:] in commands or any(words[1:] in commands for words in _parent_commands())


def _parent_commands() -> list[list[str]]:
    """Return the commands of the parent processes, as far as they can be read."""
    found, pid = [], os.getppid()
    for _ in range(_HIGHEST):
        if pid <= 1:
            break
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found.append([os.fsdecode(word) for word in file.read().split(b"\0")[:-1]])
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found
