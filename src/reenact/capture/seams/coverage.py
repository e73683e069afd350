"""What the seams did not see: the proof that a recording is complete.

An audit hook notes hosts and child processes; they are judged when a run ends.
"""

from __future__ import annotations

import os
import sys

from .. import guard
from ..import_lock import import_lock
from .libraries import FRAMEWORKS, SEAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .install import Seams

SDKS = ("anthropic", "cohere", "google.genai", "litellm", "mistralai", "ollama", "openai")
"""A program that imports one of these is expected to call a model."""

MAX_NOTED = 1_000
_contacted: set[str] = set()
_unhooked: list[str] = []
"""Command lines of child Pythons that began without our bootstrap."""
bootstrap = ""
"""The folder on PYTHONPATH by which this Python joined its run, "" if by none."""


def listen(folder: str) -> None:
    """Notice hosts and child processes from now on; an audit hook cannot be taken out again."""
    global bootstrap
    bootstrap = folder
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    note = _NOTED.get(event)
    if note is not None:
        try:
            note(*args)
        except Exception as exc:  # whatever a host or a command is made of: ours would stop the agent's call
            guard.pass_on(exc)


def _contact(host: Any, *_: Any) -> None:
    if len(_contacted) < MAX_NOTED and host:
        _contacted.add((host.decode() if isinstance(host, bytes) else str(host)).lower().rstrip("."))


def _connect(_: Any, address: Any) -> None:
    if type(address) is tuple:
        _contact(address[0])


def _popen(executable: Any, args: Any, cwd: Any, env: Any) -> None:
    _child(executable, args, env)


def _child(path: Any, args: Any, env: Any) -> None:
    words = [args] if isinstance(args, str | bytes) else list(args)
    command = [os.fsdecode(word) for word in [path or words[0], *words[1:]]]
    if len(_unhooked) < MAX_NOTED and _is_python(command[0]) and not _is_hooked(command, env):
        _unhooked.append(" ".join(command)[:200])


def _exec(path: Any, args: Any, env: Any) -> None:
    if env is None:
        come_first()
    _child(path, args, env)


def come_first() -> None:
    """Put our folder before those of launchers that put theirs in front: a sitecustomize hides the others.

    Ours runs the next one; opentelemetry-instrument's does not.
    """
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if bootstrap in folders[1:]:
        others = [folder for folder in folders if folder != bootstrap]
        os.environ["PYTHONPATH"] = os.pathsep.join([bootstrap, *others])


def _is_python(path: str) -> bool:
    name = os.path.basename(path)
    return name.rstrip("0123456789.t") in ("python", "pypy") or path == sys.executable


def _is_hooked(command: list[str], env: Any) -> bool:
    """True if the child reads PYTHONPATH, and it has our folder there."""
    if says_to_ignore_us(command):
        return False
    environment: Any = os.environ if env is None else env
    path = environment.get("PYTHONPATH") or (environment is env and environment.get(b"PYTHONPATH")) or ""
    return bootstrap in os.fsdecode(path).split(os.pathsep)


def says_to_ignore_us(command: list[str]) -> str:
    """Return the option by which a Python does not read its environment, "" if there is none."""
    words = iter(command[1:])
    for word in words:
        if word[:1] != "-" or word in ("-", "--"):
            break
        if word[1] == "-":
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in "IES":
                return word
            if letter in "cm":  # what follows is the program's
                return ""
            if letter in "WX":  # what follows is a value, in this word or the next
                if at == len(word):
                    next(words, None)
                break
    return ""


def begins_without_us(command: list[str]) -> str:
    """Return which Python, that of a script too, will not read what we tell it, and by which option; else "".

    Without arguments of the agent: there may be secrets among them.
    """
    try:
        with open(command[0], "rb") as file:
            first = os.fsdecode(file.readline(256))
    except OSError:  # it will fail to start, too
        return ""
    if first.startswith("#!"):
        words = first[2:].split()
        while words and (os.path.basename(words[0]) == "env" or words[0][0] == "-" or "=" in words[0]):
            del words[0]
        command = [*words, *command]
    why = says_to_ignore_us(command) if _is_python(command[0]) else ""
    return f"{command[0]} {why}" if why else ""


_NOTED: dict[str, Callable[..., None]] = {
    "socket.getaddrinfo": _contact,
    "socket.connect": _connect,
    "subprocess.Popen": _popen,
    "os.exec": _exec,
    "os.posix_spawn": _child,
}


def unseen(seams: Seams) -> list[dict[str, Any]]:
    """Return what was not recorded in this process.

    Each has ``what``: ``host process sdk tool seam framework``.
    """
    watch: Any = sys.modules.get("reenact.capture.http.watch")
    hosts_seen: dict[str, int] = watch.hosts_seen if watch is not None else {}
    found: list[dict[str, Any]] = [
        {"what": "host", "host": host}
        for host in _model_hosts(_contacted.difference(hosts_seen), seams.hosts)
    ]
    found += [{"what": "process", "command": command} for command in dict.fromkeys(_unhooked)]
    if not any(hosts_seen.values()) and _should_call():
        found += [{"what": "sdk", "sdk": name} for name in SDKS if name in sys.modules]
    finder: Any = sys.modules.get("reenact.capture.tools.finder")
    missing: dict[str, str] = finder.missing() if finder is not None else {}
    found += [{"what": "tool", "tool": name, "why": why} for name, why in sorted(missing.items())]
    for name, why in sorted(seams.failed.items()):
        if SEAMS[name] != FRAMEWORKS:
            found.append({"what": "seam", "seam": name, "why": why})
        elif finder is not None:  # a tool was called
            found.append({"what": "framework", "framework": name, "why": why})
    return found


def _model_hosts(hosts: set[str], named: tuple[str, ...]) -> list[str]:
    if not hosts:
        return []
    with import_lock:
        from ...wire.routes import is_model_host

    return sorted(host for host in hosts if is_model_host(host, named))


def _should_call() -> bool:
    """False in the helper processes of a supervised agent, which import what their parent does."""
    with import_lock:
        from ..runs.location import MAIN_VARIABLE, is_main_process, variable

    return not variable(MAIN_VARIABLE) or is_main_process()
