"""Turns drawn: what was new in the prompt, the answer, the tools with their results, other events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...debugger.story import Block, Repeated, in_folds, interval, spent_ms
from ...debugger.suspects.model_rules import unread
from ...debugger.suspects.result_rules import contradiction
from ...money.ledger import Ledger
from ...recording.calls import Call, Turn, tokens_of
from ...recording.prompt import Delta, Keys, Piece, answer_pieces, opened, prompt_of
from ...recording.recording import Recording
from ...tracefile import status as states
from ...tracefile.dialects import ARGS_KEYS, RESULT_KEYS
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address, describe, error_text
from ...tracefile.events.text import (
    call_text,
    clean,
    compact,
    count,
    cut,
    milliseconds,
    offset_text,
    plain,
    seconds,
    width_of,
)
from ...wire import reading
from ...wire.json_values import as_json, string
from ...wire.neutral import REASONING, RESULT, TOOL
from ...wire.results import CONTRADICTED, OTHER_FORM, SAME, comparable, result_text
from ..output import Cell, Output

# Texts in lines of a width, indented, cut with a note on how much was left out.

_INDENT = 8
"""Leading blanks of a line that are kept: code stays readable, a hostile text does not wander off."""


class Entry(NamedTuple):
    """One thing of a turn: where it stands, what it is, its text, and a number at the right edge."""

    address: str
    sign: str
    text: str
    label: str = ""
    right: str = ""
    style: str = ""
    sign_style: str = "dim"
    lines: int | None = None
    """At most so many; None: as many as the page allows."""
    ends: bool = False
    """True for an error: its last line, which has the cause, is shown whatever is left out before it."""


class Page:
    """Writes entries in columns: address, sign, text, right edge."""

    def __init__(self, out: Output, *, lines: int, address_width: int) -> None:
        self.out = out
        self.lines = lines
        self.address_width = address_width

    @property
    def margin(self) -> int:
        return self.address_width + 3

    def entry(self, entry: Entry) -> None:
        """Write one entry, its text broken into a few lines; the number stands beside the last one."""
        out, room = self.out, self.out.width - self.margin
        label = entry.label + "  " if entry.label and entry.text else entry.label
        body, hidden = wrap(entry.text, room - width_of(label), room, entry.lines or self.lines)
        if hidden and entry.lines == 1:
            space = room - width_of(label + entry.right) - (2 if entry.right else 0)
            body, hidden = [cut(clean(entry.text[: 4 * room]), space)], 0
        tail = _last_line(entry.text, room) if hidden and entry.ends else ""
        hidden = max(0, hidden - len(tail))
        more = f" … {size(hidden)} more" if hidden else ""
        if more:
            space = room - len(more) - (width_of(label) if len(body) == 1 else 0)
            body[-1] = _break(body[-1], max(space, 1))[0]
        left = f"{entry.address:>{self.address_width}} "
        lines: list[list[Cell]] = [[(left, "dim"), (entry.sign + " ", entry.sign_style)]]
        lines[0] += [(label, entry.style or "bold"), (body[0], entry.style)]
        lines += [[(" " * self.margin, ""), (text, entry.style)] for text in body[1:]]
        lines[-1].append((more, "dim"))
        if tail:
            lines.append([(" " * self.margin, ""), (tail, entry.style)])
        if entry.right:
            used = sum(width_of(text) for text, _ in lines[-1])
            if used + 2 + width_of(entry.right) > out.width:
                lines.append([])
                used = 0
            lines[-1].append((" " * (out.width - used - width_of(entry.right)) + entry.right, "dim"))
        for cells in lines:
            out.line(out.cells(cells).rstrip())

    def note(self, text: str, style: str = "dim") -> None:
        """Write a line of our own between entries."""
        self.out.line(self.out.paint(cut(" " * self.margin + text, self.out.width), style))


def wrap(text: str, first: int, room: int, lines: int) -> tuple[list[str], int]:
    """Return at most so many lines that fit, and how many characters did not.

    >>> wrap("one two three four", 8, 8, 1)
    (['one two'], 10)
    """
    bound = 4 * room * lines + 200
    rest = clean(text[:bound]).expandtabs(4)
    beyond = max(0, len(text) - bound)
    found: list[str] = []
    paragraphs = [line.rstrip() for line in rest.split("\n") if line.strip()]
    while paragraphs and (len(found) < lines or _is_last(paragraphs, room, beyond)):
        line = paragraphs.pop(0)
        blanks = min(len(line) - len(line.lstrip()), _INDENT)
        piece, left = _break(" " * blanks + line.lstrip(), max(8, room if found else first))
        found.append(piece)
        if left:
            paragraphs.insert(0, left)
    return found or [""], sum(map(len, paragraphs)) + beyond


def _is_last(paragraphs: list[str], room: int, beyond: int) -> bool:
    """True if what is left takes no more space than the note that it was left out."""
    return not beyond and len(paragraphs) == 1 and width_of(paragraphs[0]) <= room


def _break(line: str, room: int) -> tuple[str, str]:
    """Return what of a line fits, broken between words where that does not waste half of it."""
    if width_of(line) <= room:
        return line, ""
    used, at = 0, room
    for at, char in enumerate("" if line.isascii() else line):  # noqa: B007
        used += width_of(char)
        if used > room:
            break
    blank = line.rfind(" ", at // 2, at + 1)
    at = blank if blank > 0 else max(at, 1)
    return line[:at].rstrip(), line[at:].lstrip()


def _last_line(text: str, room: int) -> str:
    """Return the last line that says something, or its end if it is long."""
    line = clean(text[-8 * room :].rstrip()).rpartition("\n")[2].strip()
    return line if width_of(line) <= room else "…" + line[-(room // 2 if not line.isascii() else room - 1) :]


def _is_error(text: str) -> bool:
    """True if a text begins as errors do, or holds a traceback."""
    return text.lstrip()[:9].lower().startswith(("error", "traceback")) or _TRACEBACK in text[:4000]


_TRACEBACK = "Traceback (most recent call last)"


def size(count: int) -> str:
    """Return an amount of text.

    >>> size(812), size(3174), size(5_200_000)
    ('812 B', '3.1 KB', '5.0 MB')
    """
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MB"


# The line a turn begins with: number, lane, when, model; tokens, money and time at the right edge.

_NARROW = 8
"""Columns in which no name can be read."""


def heading(turn: Turn, lane: str | None, ledger: Ledger, started: float | None, out: Output) -> None:
    """Write the heading of a turn."""
    left = f"turn {turn.number}"
    lane = f"  [{plain(lane, 24)}]" if lane is not None else ""
    right = _fitting(_numbers(turn, ledger), out.width - width_of(left + lane) - 2)
    room = out.width - width_of(left + lane + right) - 4
    offset, model = offset_text(turn.request.timestamp, started), plain(ledger.model_of(turn.call) or "", 60)
    about = "  ".join(part for part in (offset, model) if part)
    if width_of(about) > room:
        about = cut(model or offset, max(room, 0)) if room > _NARROW else ""
    space = " " * (out.width - width_of(left + lane + about + right) - 2)
    out.line(out.cells([(left, "bold"), (lane, "cyan"), ("  " + about, "dim"), (space + right, "")]).rstrip())


def _fitting(cells: list[str], room: int) -> str:
    """Return the cells in one text; the first ones give way where there is no room."""
    while cells and width_of("  ".join(cells).lstrip()) > room:
        del cells[0]
    return "  ".join(cells).lstrip()


def _numbers(turn: Turn, ledger: Ledger) -> list[str]:
    """Return cached tokens, tokens in and out, money and time, each as wide as its column."""
    totals, bill = tokens_of(turn.attempts), ledger.bill(turn.attempts)
    cached = f"{compact(totals.cache_read)} cached" if totals.cache_read else ""
    spent = totals.tokens_in or totals.tokens_out
    used = f"{compact(totals.tokens_in)}+{compact(totals.tokens_out)}" if spent else ""
    is_replayed = all(call.end is not None and call.end.replayed is not None for call in turn.attempts)
    unknown = "$?" if bill.unknown and ledger.has_prices else ""
    money = "replayed" if is_replayed else bill.text() if bill.priced else unknown
    return [f"{cached:>12}", f"{used:>11}", f"{money:>8}", f"{milliseconds(spent_ms(turn)):>7}"]


_WIDE = 2000
"""Characters of a tool's arguments."""

_GAP = 1.0
"""Seconds in which nothing happened that are worth a line."""

_FEW_LINES, _MANY_LINES = 3, 40
_FEW_PIECES = 2, 4
"""Of many new pieces of a prompt: the first and the last."""

_LOOSE, _IN_TURN = (20, 40), (12, 12)
"""Of many events outside turns, and in one turn: the first and the last."""

_QUIET_STOPS = (None, "end_turn", "tool_use")


class Turns:
    """Draws the blocks of one run one after the other."""

    def __init__(
        self,
        recording: Recording,
        out: Output,
        ledger: Ledger,
        *,
        lanes: list[str],
        detail: bool,
        everything: bool,
    ) -> None:
        writers = recording.writers
        self.recording = recording
        self.out = out
        self.ledger = ledger
        self.detail = detail
        """One turn alone: longer texts, and everything the prompt brought."""
        self.everything = everything or detail
        self.root = recording.first_writer
        self.has_lanes = len(lanes) > 1
        width = 5 if len(writers) < 2 else 8
        self.page = Page(out, lines=_MANY_LINES if detail else _FEW_LINES, address_width=width)
        self.is_alive = recording.status == states.RUNNING
        self._until: float | None = None
        """The time up to which the run is shown."""
        self._drawn: set[int] = set()
        """Tool calls that are shown already, by their id."""
        self._sent: dict[str, set[str]] = {}
        """By the id of a tool use: the results that are shown as sent to the model."""
        self._keys = Keys()
        self._texts_shown: set[str] = set()
        """Remarks that need no repetition."""
        self._last_error = ""
        self._pending_address = ""
        """The address of an answer that holds nothing but tool uses; its first tool shows it."""

    def block(self, block: Block) -> None:
        """Draw one turn with its tools and other events."""
        if block.turn is not None:
            self._turn(block, block.turn)
        first, last = _LOOSE if block.turn is None else _IN_TURN
        folds = [[item] for item in block.items] if self.everything else in_folds(block.items)
        end = len(folds) - last
        if not block.skipped and (self.everything or end - first <= 2):
            self._items(folds)
            return
        self._items(folds[:first])
        between = [item for fold in folds[first:end] for item in fold]
        hidden = block.skipped + sum(1 if isinstance(item, int) else 2 for item in between)
        self.page.note(f"… {count(hidden, 'more event')}; --all shows them", "yellow")
        self._until = None
        self._items(folds[end:])

    def left_out(self, turns: int) -> None:
        """Note how many turns are not shown."""
        text = f"… {count(turns, 'more turn')}; --all shows them, --turn N one"
        self.out.line(self.out.paint(text, "yellow"))
        self._until = None

    def repeated(self, turns: Repeated) -> None:
        """Note which turns are not shown because they repeat the one above."""
        times, which = turns.number - turns.first + 1, f"turns {turns.first} to {turns.number}"
        text = f"× {times}  {which}: the same calls, the same results; --all shows them"
        self.out.line(self.out.paint(cut(text, self.out.width), "yellow"))
        self._until = None

    def _turn(self, block: Block, turn: Turn) -> None:
        self._gap(turn.request.timestamp)
        heading(turn, block.lane if self.has_lanes else None, self.ledger, self.recording.started, self.out)
        self._prompt(block, turn)
        for number, call in enumerate(turn.attempts[:-1], 1):
            self._failed(call, f"attempt {number}")
        self._answer(turn)
        self._reach(turn.call)

    def _prompt(self, block: Block, turn: Turn) -> None:
        where, request = address(turn.request, self.root), turn.attempts[0].begin
        if request is not None and request.is_partial:
            self._asks(where, describe(request).text)
            return
        found = prompt_of(turn, block.before, self._keys, block.run_index, is_far=block.is_far)
        if not found.recorded:
            self._note_once("the prompt was not recorded")
            return
        for what, how in found.changes:
            self._asks(where, how, what, "yellow" if what == "history" else "dim")
            where = ""
        for piece, hidden in self._some(self._unseen(found, block.brought)):
            if hidden:
                self.page.note(f"… {count(hidden, 'more message')}; --turn {turn.number} shows all")
            self._new(where, piece, _call_of(piece, block.brought))
            where = ""
        if where:
            self._asks(where, "", "the results above" if found.new else "nothing new", "dim")

    def _new(self, where: str, piece: Piece, call: Call | None) -> None:
        """Draw what is new in a prompt; a result that is not what the tool returned beside that."""
        verdict = call.verdict if call is not None else None
        if call is not None and verdict == CONTRADICTED:
            text = contradiction(call)
            self.page.entry(Entry(where, "✗", text, "", "", "red", "red", 4))
            return
        label = "result" if piece.sort == RESULT else plain(piece.role, 20)
        label += " as sent" if verdict == OTHER_FORM else ""
        self._asks(where, piece.text, label, "dim" if piece.role == "system" else _color(piece))

    def _unseen(self, found: Delta, brought: Sequence[Call]) -> list[Piece]:
        """Return the new pieces without the results that are shown with their tools.

        A result is shown there if it is that of the same tool use, and says the same.
        """
        unseen = []
        for piece in found.new:
            if piece.sort == RESULT and piece.id is not None:
                call, text = _call_of(piece, brought), comparable(piece.text)
                shown = self._sent.setdefault(piece.id, set())
                is_above = call is not None and id(call) in self._drawn and call.verdict in (None, SAME)
                is_repeated = text in shown and call is None
                shown.add(text)
                if (is_above or is_repeated) and not self.detail:
                    continue
            unseen.append(piece)
        return unseen

    def _some(self, pieces: list[Piece]) -> list[tuple[Piece, int]]:
        """Return the first and last pieces, each with how many are left out just before it."""
        first, last = _FEW_PIECES
        hidden = len(pieces) - first - last
        if hidden <= 1 or self.detail:
            return [(piece, 0) for piece in pieces]
        shown = [(piece, 0) for piece in (*pieces[:first], *pieces[-last:])]
        shown[first] = shown[first][0], hidden
        return shown

    def _answer(self, turn: Turn) -> None:
        call, end = turn.call, turn.response
        attempt = f"attempt {len(turn.attempts)}" if len(turn.attempts) > 1 else ""
        if call.error is not None:
            self._failed(call, attempt)
            self._begun(end)
            return
        if end is None:
            self._unanswered(call, attempt)
            return
        where = address(end, self.root)
        if end.is_partial:
            self._answers(where, describe(end).text)
            return
        pieces = answer_pieces(end)
        for piece in pieces:
            if piece.sort == REASONING:
                self._answers(where, piece.text, "thinking", "dim")
            elif piece.sort != TOOL:
                self._answers(where, piece.text)
            where = "" if piece.sort != TOOL else where
        stop = unread(end) or string(end.stored_fields.get("stop_reason"))
        if stop not in _QUIET_STOPS:
            self._answers(where, plain(stop or "", 60), "stopped by", "yellow")
            where = ""
        if not pieces:
            fields = end.stored_fields
            if "body" in fields or "content" in fields or "text" in fields:
                self._answers(where, "", "an empty answer", "dim")
            else:
                self._note_once("the answer's text was not recorded")
            where = ""
        self._pending_address = where

    def _begun(self, end: Event | None) -> None:
        """Draw what had come of an answer that was cancelled, or cut off."""
        if end is None or end.is_partial:
            return
        status = end.stored_fields.get("status")
        if type(status) is int and status < 400 and (text := reading.text(end.body)):
            self._answers("", text, "had come", "dim")

    def _unanswered(self, call: Call, attempt: str) -> None:
        """Draw a call without an end, and what had come of its answer when the process died."""
        found = self.recording.partial_answer(call.id)
        self._open(call, "no answer was recorded" if found is None else "the answer had not ended", attempt)
        if found is not None:
            assembled, size = found
            text = reading.text(assembled.body) if assembled.body else ""
            self._answers("", text, f"{size:,} bytes had come", "dim")

    def _items(self, folds: Sequence[Sequence[Call | int]]) -> None:
        for item, *equal in folds:
            if isinstance(item, int):
                self._event(self.recording.events[item])
                continue
            self._gap(item.event.timestamp)
            (self._derived if item.derived else self._recorded)(item, f" × {len(equal) + 1}" if equal else "")
            for call in (item, *equal):
                self._drawn.add(id(call))
                self._reach(call)  # type: ignore[arg-type]

    def _recorded(self, call: Call, times: str) -> None:
        event, end = call.event, call.end
        fields = {} if event.is_partial else event.stored_fields
        args = opened(event, next((fields[key] for key in ARGS_KEYS if fields.get(key) is not None), None))
        text = call_text(call.tool, args, _WIDE) if fields else describe(event).text
        self._tool_line(address(event, self.root), text + times, milliseconds(call.duration_ms))
        if call.error is not None:
            self._failed(call, "", with_time=False)
        elif end is None:
            self._open(call, "no result was recorded")
        elif end.is_partial:
            self._result_line(address(end, self.root), "(a line of over 64 MB)", "dim")
        else:
            fields = end.stored_fields
            result = opened(end, next((fields[key] for key in RESULT_KEYS if key in fields), None))
            result_words = result if type(result) is str else as_json(result)
            self._result_line("" if end is event else address(end, self.root), result_words)

    def _derived(self, call: Call, times: str) -> None:
        """Draw a tool that nobody recorded, with its result from the next prompt."""
        took = milliseconds(call.duration_ms)
        text = call_text(call.tool, call.args, _WIDE) + times
        self._tool_line(self._pending_address, text, f"≤ {took}" if took else "")
        self._pending_address = ""
        if call.end is None:
            text = "requested; no result yet" if self.is_alive else "requested, never answered"
            self.page.entry(Entry("", "·", text, style="yellow"))
            return
        style = "red" if call.error is not None else ""
        self._result_line(address(call.end, self.root), result_text(call.result), style)

    def _failed(self, call: Call, label: str, *, with_time: bool = True) -> None:
        error = call.error
        text = error_text(error) if error is not None else "no answer was recorded"
        where = address(call.end or call.event, self.root)
        took = milliseconds(call.duration_ms) if with_time else ""
        self.page.entry(Entry(where, "✗", text, label, took, "red", "red", ends=True))
        self._last_error = text

    def _open(self, call: Call, text: str, label: str = "") -> None:
        alive = self.is_alive and call.event.writer == self.root
        sign, text = ("·", "it is still going on") if alive else ("✗", text)
        self.page.entry(Entry("", sign, text, label, "", "yellow", "yellow"))

    def _event(self, event: Event) -> None:
        self._gap(event.timestamp)
        described = describe(event)
        style = "red" if described.error else "dim" if described.sign == "·" else ""
        is_repeated = described.error and described.error == self._last_error
        error = "the same error again" if is_repeated else described.error
        text = "  ".join(part for part in (described.text, error) if part)
        lines = None if self.detail or described.error else 1
        where = address(event, self.root)
        self.page.entry(
            Entry(
                where,
                described.sign,
                text,
                "",
                described.duration,
                style,
                style,
                lines,
                bool(described.error),
            )
        )
        self._last_error = described.error or self._last_error
        self._reached(event.timestamp)

    def _asks(self, where: str, text: str, label: str = "", style: str = "") -> None:
        self.page.entry(Entry(where, "→", text, label, "", style, "cyan", ends=_is_error(text)))

    def _answers(self, where: str, text: str, label: str = "", style: str = "") -> None:
        self.page.entry(Entry(where, "←", text, label, "", style, "cyan"))

    def _tool_line(self, where: str, text: str, took: str = "") -> None:
        self.page.entry(Entry(where, "▸", text, "", took, "", "blue"))

    def _result_line(self, where: str, text: str, style: str = "") -> None:
        if not text.strip():
            text, style = "an empty text", "dim"
        is_error = style == "red" or _is_error(text)
        self.page.entry(Entry(where, "◂", text, "", "", style, "blue", ends=is_error))

    def _note_once(self, text: str) -> None:
        if text not in self._texts_shown:
            self._texts_shown.add(text)
            self.page.note(f"{text}, here and wherever it is missing")

    def _gap(self, begin: float | None) -> None:
        if begin is not None and self._until is not None and _GAP < begin - self._until < 1e9:
            self.page.note(f"… {seconds(begin - self._until)} later")

    def _reach(self, call: Call) -> None:
        when = interval(call)
        self._reached(when[1] if when is not None else call.event.timestamp)

    def _reached(self, ts: float | None) -> None:
        if ts is not None:
            self._until = ts if self._until is None else max(self._until, ts)


def _call_of(piece: Piece, brought: Sequence[Call]) -> Call | None:
    """Return the tool call whose result a piece of a prompt is: of its id, else of its name."""
    if piece.sort != RESULT or piece.id is None:
        return None
    return next((call for call in brought if piece.id in (call.tool_id, call.tool)), None)


def _color(piece: Piece) -> str:
    return "red" if piece.failed else ""
