"""Turns drawn: heading with numbers at the right edge, what was new in the prompt, answer, tools."""

from __future__ import annotations

import json
from typing import Any

from ...tracefile import status as states
from ...tracefile.calls import Call, Turn
from ...tracefile.dialects import ARGS_KEYS, RESULT_KEYS
from ...tracefile.event import Event
from ...tracefile.recording import Recording
from ...wire import shapes
from ...wire.values import as_json, string
from ..eventline import address, describe, error_text, is_huge, offset_text
from ..output import Output
from ..text import arguments, compact, count, cut, milliseconds, plain, seconds, width_of
from .facts import Ledger, interval, spent_ms, tokens
from .layout import Entry, Page
from .pieces import REASONING, RESULT, Piece, answer_pieces, opened, pieces_of
from .prompt import NOT_RECORDED, Delta, delta, stored_delta
from .story import Block, lane_of

_GAP = 1.0
"""Seconds in which nothing happened that are worth a word."""

_FEW_LINES, _MANY_LINES = 3, 40
_FEW_MESSAGES = 2, 4
"""Of many new messages: the first and the last."""

_LOOSE, _IN_TURN = (20, 40), (12, 12)
"""Of many events outside turns, and in one turn: the first and the last."""

_QUIET_STOPS = (None, "end_turn", "tool_use")


class Turns:
    """Draws the blocks of one run one after the other."""

    def __init__(
        self, recording: Recording, out: Output, ledger: Ledger, *, lanes: list[str], detail: bool
    ) -> None:
        writers = recording.writers
        self.recording = recording
        self.out = out
        self.ledger = ledger
        self.detail = detail
        self.root = writers[0] if writers else None
        self.has_lanes = len(lanes) > 1
        self.page = Page(
            out, lines=_MANY_LINES if detail else _FEW_LINES, address_width=5 if len(writers) < 2 else 8
        )
        self.alive = recording.status == states.RUNNING
        self._has_said_unrecorded = False
        self._until: float | None = None
        self._results: set[str] = set()
        """Ids of tool uses whose results were shown, with the text as the model saw it later."""

    def block(self, block: Block) -> None:
        """Draw one turn with its tools and other events."""
        if block.turn is not None:
            self._turn(block)
        first, last = _LOOSE if block.turn is None else _IN_TURN
        items = block.items
        hidden = len(items) - first - last if not self.detail else 0
        if hidden <= 2 and not block.skipped:
            self._items(items)
            return
        self._items(items[:first])
        events = sum(1 if type(item) is int else 2 for item in items[first : len(items) - last])
        self.page.note(
            f"… {count(events + block.skipped, 'more event')}; --events --all shows them", "yellow"
        )
        self._until = None
        self._items(items[len(items) - last :])

    def left_out(self, turns: int) -> None:
        """Say how many turns are not shown."""
        self.out.line(
            self.out.paint(f"… {count(turns, 'more turn')}; --all shows them, --turn N one", "yellow")
        )
        self._until = None

    def _turn(self, block: Block) -> None:
        turn = block.turn
        assert turn is not None
        self._gap(turn.request.timestamp)
        self._heading(turn)
        self._prompt(block, turn)
        for number, call in enumerate(turn.attempts[:-1], 1):
            self._failed(call, f"attempt {number}")
        self._answer(block, turn)
        self._reach(turn.call)

    def _heading(self, turn: Turn) -> None:
        out, model = self.out, self.ledger.model(turn.call)
        left = f"turn {turn.number}"
        lane = f"  [{plain(lane_of(turn.call, self.root), 30)}]" if self.has_lanes else ""
        cells = _numbers(turn, self.ledger)
        while cells and sum(map(width_of, cells)) + 2 * len(cells) > out.width - width_of(left + lane):
            del cells[0]
        right = "".join("  " + cell for cell in cells)
        offset = offset_text(turn.request.timestamp, self.recording.started)
        room = out.width - width_of(left + lane + right) - 2
        about = cut("  ".join(part for part in (offset, plain(model or "", 60)) if part), max(room, 0))
        space = " " * max(0, out.width - width_of(left + lane + right) - width_of(about) - 2)
        painted = [(left, "bold"), (lane, "cyan"), ("  " + about, "dim"), (space + right, "")]
        out.line(out.cells(painted).rstrip())

    def _prompt(self, block: Block, turn: Turn) -> None:
        request = turn.attempts[0].begin
        where = address(turn.request, self.root)
        if request is not None and is_huge(request):
            self.page.entry(Entry(where, "→", describe(request).text))
            return
        found = prompt_of(block)
        if not found.recorded:
            if not self._has_said_unrecorded:
                self.page.note("the prompt was not recorded; neither where nothing is said of it")
            self._has_said_unrecorded = True
            return
        for what, how in found.changes:
            self.page.entry(
                Entry(
                    where,
                    "→",
                    how,
                    label=what,
                    style="yellow" if what == "history" else "dim",
                    sign_style="cyan",
                )
            )
            where = ""
        for piece, hidden in _some(self._unseen(block, found)):
            if hidden:
                self.page.note(
                    f"… {count(hidden, 'more piece')} of the prompt; --turn {turn.number} shows them"
                )
            label = "result" if piece.sort == RESULT else piece.role
            style = "dim" if piece.role == "system" else "red" if piece.failed else ""
            self.page.entry(
                Entry(where, "→", piece.text, label=plain(label, 20), style=style, sign_style="cyan")
            )
            where = ""
        if where:
            self.page.entry(
                Entry(
                    where,
                    "→",
                    "",
                    label="nothing new" if found.new == [] else "the results above",
                    style="dim",
                    sign_style="cyan",
                )
            )
        if request is not None:
            request._forget()

    def _unseen(self, block: Block, found: Delta) -> list[Piece]:
        """Return the new pieces that were not told already as the answer or a tool's result."""
        pieces = [piece for message in found.new for piece in pieces_of(message)]
        if self.detail:
            return pieces
        before = block.before
        answer = before.response if before is not None else None
        said = {piece.text.strip() for piece in answer_pieces(answer)} if answer is not None else set()
        return [
            piece
            for piece in pieces
            if not (piece.role == "assistant" and (piece.text.strip() in said or piece.sort == REASONING))
            and not (piece.sort == RESULT and _fingerprint(piece) in self._results)
        ]

    def _answer(self, block: Block, turn: Turn) -> None:
        call = turn.call
        if call.error is not None:
            self._failed(call, f"attempt {len(turn.attempts)}" if len(turn.attempts) > 1 else "")
            return
        if call.end is None:
            self._open(call, "no answer was recorded")
            return
        where, end = address(call.end, self.root), call.end
        if is_huge(end):
            self.page.entry(Entry(where, "←", describe(end).text))
            return
        pieces = answer_pieces(end)
        spoken = [piece for piece in pieces if piece.sort != "tool"]
        for piece in spoken:
            thought = piece.sort == REASONING
            self.page.entry(
                Entry(
                    where,
                    "←",
                    piece.text,
                    "thinking" if thought else "",
                    style="dim" if thought else "",
                    sign_style="cyan",
                )
            )
            where = ""
        stop = string(end._raw().get("stop_reason"))
        if stop not in _QUIET_STOPS:
            self.page.entry(
                Entry(where, "←", plain(stop or "", 60), "stopped:", style="yellow", sign_style="cyan")
            )
            where = ""
        asked = [use for use in _uses(end) if not _was_called(use, turn)]
        if where and not asked and not turn.tools:
            self.page.entry(Entry(where, "←", "", label=_empty(end), style="dim", sign_style="cyan"))
        self._asked(asked, block, address(end, self.root))
        end._forget()

    def _asked(self, uses: list[tuple[str | None, str, object]], block: Block, where: str) -> None:
        """Draw tools that were asked for and not recorded, with what the next prompt says they gave."""
        if not uses:
            return
        found = (
            prompt_of(Block(block.after, 0, [], block.turn, is_far=block.is_far))
            if block.after
            else NOT_RECORDED
        )
        answers = {
            piece.id: piece for message in found.new for piece in pieces_of(message) if piece.sort == RESULT
        }
        for use_id, name, args in uses:
            self.page.entry(Entry(where, "▸", _call_text(name, args), sign_style="blue"))
            piece = answers.get(use_id) or answers.get(name)
            if piece is None:
                self.page.entry(Entry("", "·", "asked for, but no result was recorded", style="yellow"))
                continue
            self._results.add(_fingerprint(piece))
            then = address(block.after.request, self.root) if block.after else ""
            self.page.entry(
                Entry(then, "◂", piece.text, style="red" if piece.failed else "", sign_style="blue")
            )

    def _items(self, items: list[Call | int]) -> None:
        for item in items:
            if isinstance(item, Call):
                self._gap(item.event.timestamp)
                self._tool(item)
                self._reach(item)
            else:
                self._event(self.recording.events[item])

    def _tool(self, call: Call) -> None:
        begin, end = call.begin, call.end
        event = begin or end
        assert event is not None
        huge = is_huge(event)
        fields = {} if huge else event._raw()
        args = opened(event, next((fields[key] for key in ARGS_KEYS if fields.get(key) is not None), None))
        text = describe(event).text if huge else _call_text(call.tool or "?", args)
        took = milliseconds(call.duration_ms)
        self.page.entry(Entry(address(event, self.root), "▸", text, right=took, sign_style="blue"))
        if call.error is not None:
            self._failed(call, "", took=False)
        elif end is None:
            self._open(call, "no result was recorded")
        elif not is_huge(end):
            self._result(call, end, "" if end is event else address(end, self.root))
        for seen in (begin, end):
            if seen is not None:
                seen._forget()

    def _result(self, call: Call, end: Event, where: str) -> None:
        fields = end._raw()
        result = opened(end, next((fields[key] for key in RESULT_KEYS if key in fields), None))
        text = result if type(result) is str else as_json(result)
        self._results.add(_canonical(text))
        self.page.entry(Entry(where, "◂", text if text.strip() else "(an empty text)", sign_style="blue"))

    def _failed(self, call: Call, label: str, *, took: bool = True) -> None:
        assert call.error is not None
        where = address(call.end or call.event, self.root)
        right = milliseconds(call.duration_ms) if took else ""
        self.page.entry(Entry(where, "✗", error_text(call.error), label, right, "red", "red"))

    def _open(self, call: Call, text: str) -> None:
        still = "it is still going on" if self.alive and call.event.writer == self.root else text
        self.page.entry(Entry("", "·" if self.alive else "✗", still, style="yellow", sign_style="yellow"))

    def _event(self, event: Event) -> None:
        self._gap(event.timestamp)
        told = describe(event)
        style = "red" if told.error else "dim" if told.sign == "·" else ""
        text = f"{told.text}  {told.error}".strip() if told.error else told.text
        where = address(event, self.root)
        self.page.entry(Entry(where, told.sign, text, "", told.duration, style, style))
        if event.timestamp is not None:
            self._until = max(self._until or event.timestamp, event.timestamp)
        event._forget()

    def _gap(self, begin: float | None) -> None:
        if begin is not None and self._until is not None and _GAP < begin - self._until < 1e9:
            self.page.note(f"… {seconds(begin - self._until)} later")

    def _reach(self, call: Call) -> None:
        times = interval(call) or (None, call.event.timestamp)
        if times[1] is not None:
            self._until = max(self._until or times[1], times[1])


def prompt_of(block: Block) -> Delta:
    """Return what was new in the prompt of a turn."""
    assert block.turn is not None
    request = block.turn.attempts[0].begin
    if request is None or request is block.turn.attempts[0].end or is_huge(request):
        return NOT_RECORDED
    before = block.before.attempts[-1].begin if block.before is not None else None
    if block.is_far:
        length = before._raw().get("n") if before is not None else None
        return stored_delta(request, length if type(length) is int else None)
    return delta(request, before if before is None or not is_huge(before) else None)


def _numbers(turn: Turn, ledger: Ledger) -> list[str]:
    """Return cached tokens, tokens in and out, money and time as the right edge of a heading shows them."""
    totals, bill = tokens(turn.attempts), ledger.bill(turn.attempts)
    spent = totals.tokens_in or totals.tokens_out
    cached = f"{compact(totals.cache_read)} cached" if totals.cache_read else ""
    used = f"{compact(totals.tokens_in)}+{compact(totals.tokens_out)}" if spent else ""
    money = bill.text() if bill.priced else ""
    return [f"{cached:>12}", f"{used:>11}", f"{money:>8}", f"{milliseconds(spent_ms(turn)):>7}"]


def _uses(end: Event) -> list[tuple[str | None, str, object]]:
    fields = end._raw()
    body = fields.get("body")
    return shapes.tool_uses(opened(end, body), string(fields.get("provider"))) if type(body) is dict else []


def _was_called(use: tuple[str | None, str, object], turn: Turn) -> bool:
    """True if a recorded call carried out the use."""
    for call in turn.tools:
        given = call.event._raw().get("tool_id")
        if use[0] == given if type(given) is str and use[0] is not None else use[1] == call.tool:
            return True
    return False


def _call_text(name: str, args: object) -> str:
    return f"{plain(name or '?', 60)}({arguments(args, 2000)})"


def _empty(end: Event) -> str:
    fields = end._raw()
    said = "body" in fields or "content" in fields or "text" in fields
    return "an empty answer" if said else "the answer's text was not recorded"


def _fingerprint(piece: Piece) -> str:
    return _canonical(piece.text)


def _canonical(text: str) -> str:
    """Return a result so that what a tool gave and what the model was told compare equal if they are."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    return value if type(value) is str else json.dumps(value, sort_keys=True)


def _some(pieces: list[Piece]) -> list[tuple[Piece, int]]:
    """Return the first and last pieces, each with how many are left out just before it."""
    first, last = _FEW_MESSAGES
    hidden = len(pieces) - first - last
    if hidden <= 1:
        return [(piece, 0) for piece in pieces]
    shown = [(piece, 0) for piece in (*pieces[:first], *pieces[-last:])]
    shown[first] = shown[first][0], hidden
    return shown
