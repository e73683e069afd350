"""One sitting at the prompt: the stepper, what is shown at each stop, and how a line is carried out."""

from __future__ import annotations

import sys
import time

from ... import schema
from ...debugger.breakpoints import Breakpoint, Progress, unquoted
from ...debugger.expressions import Expr
from ...debugger.stepper import Move, Stepper
from ...errors import ReenactError
from ...money.prices import Book
from ...recording.recording import Recording
from ...stats.rows import RunStats
from ...stats.sums import Gatherer
from ...tracefile.line_heads import base_kind
from ...tracefile.text import clean
from ..main import own_fault, sentence
from ..output import Output
from .verb import Verbs
from .view import JsonView, View

# Tokens and money of the model calls up to an event.

_MODEL = frozenset((schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.LLM_CALL))


class Spending:
    """Sums of one recording; going back begins anew."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._book = Book.open()
        self._begin()

    def _begin(self) -> None:
        self._upto = 0
        self._sums = Gatherer(self.recording.path, self.recording.run_id, self._book)

    def through(self, index: int, progress: Progress) -> RunStats:
        """Return the figures of the model calls in all events up to one, itself included."""
        if self._upto > index + 1:
            self._begin()
        for at in range(self._upto, index + 1):
            progress(at, index)
            event = self.recording.events[at]
            if base_kind(event) in _MODEL:
                self._sums.take(event)
        self._upto = max(self._upto, index + 1)
        return self._sums.row


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
    """Carries out verbs; a wrong one is told and changes nothing."""

    def __init__(self, stepper: Stepper, verbs: Verbs, out: Output, *, as_json: bool = False) -> None:
        self.stepper = stepper
        self.verbs = verbs
        self.out = out
        self.view: View = (JsonView if as_json else View)(out, stepper)
        self.displays: dict[int, Expr] = {}
        self.is_over = False
        self.failed = False
        """True once something could not be done as typed."""
        self.listed: range | None = None
        """What ``l`` showed last, if nothing was done since."""
        self._last = ""
        self._spending: Spending | None = None
        self._depth = 0
        self._progress = _Progress(out)
        stepper.on_progress = self._progress

    @property
    def spending(self) -> Spending:
        if self._spending is None or self._spending.recording is not self.stepper.recording:
            self._spending = Spending(self.stepper.recording)
        return self._spending

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
        """Carry out one command; what goes wrong is said."""
        word, argument = split_verb(command)
        self._last = command
        listed, self._progress.began = self.listed, time.monotonic()
        try:
            self.verbs.find(word).do(self, argument)
        except BrokenPipeError:
            raise
        except (ReenactError, OSError) as why:
            self._complain(why)
        except Exception as fault:  # the prompt outlives our own mistakes
            self.failed = True
            self._progress.end()
            own_fault(self.out, fault)
        finally:
            self._progress.end()
        if self.listed is listed:
            self.listed = None
        self.out.stdout.flush()

    def _complain(self, why: ReenactError | OSError) -> None:
        self.failed = True
        self._progress.end()
        self.out.say(clean(sentence(why)))
        hint = getattr(why, "hint", None)
        if hint:
            self.out.say(f"hint: {clean(str(hint))}")

    def done_looking(self) -> None:
        """Take away what was said about how far a long look had come."""
        self._progress.end()

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


class _Progress:
    """Says on a terminal how far a look through the run has come, if it takes long."""

    def __init__(self, out: Output) -> None:
        self._stream = out.stderr
        self._is_terminal = bool(getattr(sys.stderr, "isatty", lambda: False)())
        self._shown = False
        self.began = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if self._is_terminal and time.monotonic() - self.began > 1:
            self._shown = True
            self._stream.write(f"\rlooking … {min(100, 100 * done // max(total, 1))} % (Ctrl-C stops)")
            self._stream.flush()

    def end(self) -> None:
        if self._shown:
            self._shown = False
            self._stream.write("\r" + " " * 40 + "\r")
            self._stream.flush()
