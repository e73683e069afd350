"""Reading what is typed: with readline's history and completion where there is a terminal and readline."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

from ...debugger.breakpoints import tool_begun
from ...errors import UsageError
from ..output import Output
from .session import Session, split_verb

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


# What the Tab key offers: verbs, tools, lanes, fields of the current event, marks, addresses.

_NEAR = 500
"""Events before and after this one whose tools and lanes are offered."""


def completions(session: Session, before: str, word: str) -> list[str]:
    """Return the words that may stand here and begin so."""
    command = before.rpartition(";")[2].lstrip()
    verb = split_verb(command)[0] if command else ""
    words = list(_words(session, verb))
    return sorted({each for each in words if each.startswith(word)})


def _words(session: Session, word: str) -> Iterable[str]:
    """Yield what may follow a verb, by the names in its usage."""
    if not word:
        yield from session.verbs.names
        return
    try:
        verb = session.verbs.find(word)
    except UsageError:
        return
    names = set(re.findall("[A-Z]+", verb.usage))
    if "VERB" in names:
        yield from session.verbs.names
    if names & {"ADDRESS", "WHERE"}:
        yield from (f"@{name}" for name in session.stepper.marks)
    if "ADDRESS" in names:
        turn = session.stepper.turn_at(session.stepper.event.index or 0)
        yield from ("@error", "first", "last", f"turn:{turn}")
    if "WHERE" in names:
        yield from ("error", "loop>3", 'text~"')
        yield from _nearby(session)
    if "N" in names:
        yield from (str(point.number) for point in session.stepper.stops)
    if names & {"PATH", "EXPR", "WHERE"}:
        yield from _paths(session)


def _nearby(session: Session) -> Iterable[str]:
    stepper = session.stepper
    around = range(max(0, stepper.index - _NEAR), min(len(stepper.events), stepper.index + _NEAR))
    for index in around:
        entries = [stepper.events[index], *(event for _, event in stepper.entries.beside(index))]
        yield from (f"tool:{name}" for event in entries if (name := tool_begun(event)))
        yield f"lane:{stepper.lane_at(index)}"


def _paths(session: Session) -> Iterable[str]:
    """Yield the fields of the current event, and one level of what is in them."""
    yield from ("kind", "event_type", "tool", "args", "result", "error", "content", "usage")
    for key, value in session.stepper.event.stored_fields.items():
        if key.isidentifier():
            yield key
            if type(value) is dict:
                yield from (f"{key}.{inner}" for inner in value if inner.isidentifier())
