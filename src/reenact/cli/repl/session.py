"""A session at the prompt: its verbs, how a typed line is carried out, and what is shown at each stop."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...debugger.breakpoints import Breakpoint, unquoted
from ...debugger.debugger import Debugger
from ...debugger.expressions import Expr
from ...debugger.stepper import Move, Stepper
from ...errors import ReenactError, UsageError
from ...recording.derived_events import Place
from ..main import complain, own_fault
from ..output import Output, Progress
from .view import JsonView, View

Do = Callable[["Session", str], None]


class Verb(NamedTuple):
    """One verb of the prompt."""

    name: str
    aliases: tuple[str, ...]
    """Further names, pdb's long ones among them."""
    group: str
    usage: str
    """What may follow it; nothing may if this is empty."""
    help: str
    do: Do


class Group(list[Verb]):
    """The verbs under one heading of ``h``, in its order."""

    def __init__(self, name: str) -> None:
        self.name = name

    def verb(self, names: str, usage: str, help: str) -> Callable[[Do], Do]:
        """Return a decorator that makes a function the verb of these names."""

        def add(do: Do) -> Do:
            name, *aliases = names.split()
            self.append(Verb(name, tuple(aliases), self.name, usage, help, do))
            return do

        return add


class Verbs:
    """All verbs, found by a name, an alias, or a beginning that only one verb has."""

    def __init__(self, verbs: Iterable[Verb]) -> None:
        self.all = list(verbs)
        self._by_name = {name: verb for verb in self.all for name in (verb.name, *verb.aliases)}

    @property
    def names(self) -> list[str]:
        return sorted(self._by_name)

    def find(self, word: str) -> Verb:
        """Return the verb a word means."""
        verb = self._by_name.get(word)
        if verb is not None:
            return verb
        begins = {id(found): found for name, found in self._by_name.items() if word and name.startswith(word)}
        if len(begins) == 1:
            return next(iter(begins.values()))
        if begins:
            could = ", ".join(sorted(found.name for found in begins.values()))
            raise UsageError(f"{word!r} could be {could}")
        near = difflib.get_close_matches(word, self._by_name, 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else "h lists the verbs"
        raise UsageError(f"there is no verb {word!r}", hint=hint)


# A line as typed -> its commands.

_QUOTES = "\"'"


def split_commands(line: str) -> list[str]:
    """Return the commands between semicolons that are not in quotes; a quote without its pair is a letter.

    >>> split_commands('b text~"a;b"; c')
    ['b text~"a;b"', 'c']
    """
    commands, begin, quote, escaped = [], 0, "", False
    for at, char in enumerate(line):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES and char in line[at + 1 :]:
            quote = char
        elif char == ";":
            commands.append(line[begin:at])
            begin = at + 1
    commands.append(line[begin:])
    return [command.strip() for command in commands if command.strip()]


def split_verb(command: str) -> tuple[str, str]:
    """Return the verb and what follows it.

    >>> split_verb("/hotel room"), split_verb("j  turn:3")
    (('/', 'hotel room'), ('j', 'turn:3'))
    """
    command = command.strip()
    if command[:1] in ("/", "?"):
        return command[0], command[1:]
    verb, _, argument = command.partition(" ")
    return verb, argument.strip()


_DEEPEST = 5
"""Commands of breakpoints that make other breakpoints run theirs."""


class Session:
    """Carries out verbs; a wrong one is reported and changes nothing."""

    def __init__(self, stepper: Stepper, verbs: Verbs, out: Output, *, as_json: bool = False) -> None:
        self.stepper = stepper
        self.verbs = verbs
        self.out = out
        self.view: View = (JsonView if as_json else View)(out, stepper)
        self.displays: dict[int, Expr] = {}
        self.debugger: Debugger | None = None
        """What answers ``why``, once somebody asked."""
        self.is_over = False
        self.failed = False
        """True once something could not be done as typed."""
        self.listed: Place | None = None
        """The last entry that ``l`` showed, if nothing was done since."""
        self.runs_command: Callable[[Callable[[], int]], int] = lambda command: command()
        """Calls what starts another command; a full screen gives it the terminal first."""
        self._last = ""
        self._depth = 0
        self._progress = Progress(out)
        stepper.on_progress = self._show_progress

    def do(self, line: str) -> None:
        """Carry out a line; an empty one repeats the last command."""
        commands = split_commands(line) or ([self._last] if self._last else [])
        for number, command in enumerate(commands):
            if self.is_over:
                return
            if self._takes_rest(command):
                self.do_one("; ".join(commands[number:]))
                return
            self.do_one(command)

    def _takes_rest(self, command: str) -> bool:
        """True for ``commands N VERBS``, unless its verbs are in quotes."""
        verb, argument = split_verb(command)
        rest = argument.partition(" ")[2].strip()
        try:
            return bool(rest) and self.verbs.find(verb).name == "commands" and unquoted(rest) == rest
        except ReenactError:
            return False

    def do_one(self, command: str) -> None:
        """Carry out one command; what goes wrong is reported."""
        word, argument = split_verb(command)
        self._last = command
        listed = self.listed
        self._progress.restart()
        try:
            verb = self.verbs.find(word)
            if argument and not verb.usage:
                raise UsageError(f"{verb.name} takes nothing after it", hint=f"h {verb.name} explains it")
            verb.do(self, argument)
        except BrokenPipeError:
            raise
        except (ReenactError, OSError) as why:
            self.failed = True
            self.done_looking()
            complain(self.out, why, gap="")
        except Exception as fault:  # the prompt outlives our own mistakes
            self.failed = True
            self.done_looking()
            own_fault(self.out, fault)
        finally:
            self.done_looking()
        if self.listed is listed:
            self.listed = None
        self.out.stdout.flush()

    def _show_progress(self, done: int, total: int) -> None:
        self._progress.show(f"looking … {min(100, 100 * done // max(total, 1))} % (Ctrl-C stops)")

    def done_looking(self) -> None:
        """Remove the line that says how far a long search has come."""
        self._progress.close()

    def moved(self, move: Move) -> None:
        """Show where a move ended, what is displayed there, and run the breakpoints' commands."""
        self.done_looking()
        self.view.move(move)
        if move.moved:
            self.show_displays()
        for reason in move.reasons:
            commands = reason.point.commands if isinstance(reason.point, Breakpoint) else ""
            if commands and self._depth < _DEEPEST:
                self._depth += 1
                last = self._last
                try:
                    self.do(commands)
                finally:
                    self._depth -= 1
                    self._last = last

    def show_displays(self) -> None:
        for number, expr in self.displays.items():
            self.view.value(f"{number}: {expr.text}", expr(self.stepper.event))
