"""Reading what is typed: with readline's history and completion where there is a terminal and readline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import ModuleType

from ..output import Output

PROMPT = "(reenact) "
_HISTORY = 1000

Complete = Callable[[str, str], list[str]]
"""(line up to the word, beginning of the word) -> words."""


def typed_lines(out: Output, complete: Complete, stdin: object) -> Iterator[str]:
    """Yield lines until the end of input; Ctrl-C begins a new one."""
    readline = _readline(complete)
    history = _history_path()
    _load(readline, history)
    try:
        while True:
            try:
                out.stdout.flush()
                yield input(PROMPT)
            except EOFError:
                out.line()
                return
            except KeyboardInterrupt:
                out.line()
    finally:
        _save(readline, history)


def _readline(complete: Complete) -> ModuleType | None:
    try:
        import readline
    except ImportError:  # lines can be typed all the same
        return None
    words: list[str] = []

    def completer(text: str, state: int) -> str | None:
        if state == 0:
            words[:] = complete(readline.get_line_buffer()[: readline.get_begidx()], text)
        return words[state] if state < len(words) else None

    readline.set_completer(completer)
    readline.set_completer_delims(" \t\n;")
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    return readline


def _history_path() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "reenact", "debug_history")


def _load(readline: ModuleType | None, path: str) -> None:
    if readline is not None:
        readline.set_history_length(_HISTORY)
        try:
            readline.read_history_file(path)
        except OSError:
            pass  # none yet, or not ours to read: history is a comfort


def _save(readline: ModuleType | None, path: str) -> None:
    if readline is not None:
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.chmod(path, 0o600)
            readline.write_history_file(path)
        except OSError:
            pass  # a read-only home must not spoil the end of a session
