"""What in a run deserves a look although the run may have ended well: the first lines of ``show``.

Each remark states what the trace holds: a result that was not the one that the model was sent, an error that
the program survived, equal calls again and again, an answer that was cut off, messages that were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..recording.calls import TOOL, Call
from ..recording.prompt import Keys, dropped_from, only_continues
from ..tracefile.events.event import ErrorText, Event
from ..tracefile.events.event_text import address, error_text
from ..tracefile.events.text import call_text, count, plain, short_json
from ..wire.json_values import canonical
from ..wire.results import CONTRADICTED, OTHER_FORM, result_text
from .story import Block, Story, call_key

_SHORT = 120
_REPEATED = 4
"""Equal calls with equal results in one lane that are worth a remark."""

_MOST_COMPARED = 10
"""Prompts that do not just continue the one before, the last of a run, that are compared with it."""

_CUT_OFF = ("max_tokens", "length")


class Remark(NamedTuple):
    """One thing to look at, and where it happened first."""

    event: Event
    text: str
    failed: bool = False
    times: int = 1
    """How many remarks of one text there are."""

    def as_dict(self, root: str | None) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {"event": address(self.event, root), "text": self.text, "times": self.times}


def remarks(story: Story, ended_with: ErrorText | None) -> list[Remark]:
    """Return what deserves a look, the surest first, equal ones as one; not what the run ended with."""
    found = [*_contradictions(story), *_errors(story, ended_with), *_repeated(story)]
    found += [*_cut_off(story), *_dropped(story)]
    equal: dict[str, Remark] = {}
    for each in found:
        before = equal.get(each.text)
        equal[each.text] = each if before is None else before._replace(times=before.times + 1)
    return list(equal.values())


def contradiction(call: Call) -> str:
    """Return in words that the model was sent another result than the tool returned."""
    words, returned = call_text(call.tool, call.args, _SHORT), short_json(call.result, _SHORT)
    return f"{words}: the tool returned {returned}, the model was sent {_sent(call)}"


def _sent(call: Call) -> str:
    return "" if call.sent is None else short_json(result_text(call.sent.value), _SHORT)


def _tools(blocks: Iterable[Block]) -> Iterator[Call]:
    for block in blocks:
        for item in block.items:
            if isinstance(item, Call) and item.kind == TOOL:
                yield item


def _contradictions(story: Story) -> Iterator[Remark]:
    for call in _tools(story.blocks):
        if call.error is None and call.verdict == CONTRADICTED:
            yield Remark(call.end or call.event, contradiction(call), failed=True)


def _errors(story: Story, ended_with: ErrorText | None) -> Iterator[Remark]:
    """Yield the errors that did not end the run; a tool's with what the model was sent in its place."""
    for block in story.blocks:
        failed = [call for call in block.items if isinstance(call, Call)]
        failed += [block.turn.call] if block.turn is not None else []
        for call in failed:
            error = call.error
            if error is None or (ended_with is not None and str(error) in str(ended_with)):
                continue
            if call.kind != TOOL:
                yield Remark(call.end or call.event, error_text(error), failed=True)
                continue
            text = f"{call_text(call.tool, call.args, _SHORT)}: {error_text(error)}"
            text += f"; the model was sent {_sent(call)}" if call.verdict == OTHER_FORM else ""
            yield Remark(call.end or call.event, text, failed=True)


def _repeated(story: Story) -> Iterator[Remark]:
    """Yield the calls that a lane made often, with the same result each time."""
    alike: dict[tuple[str, str | None, str], list[Call]] = {}
    for block in story.blocks:
        for call in _tools([block]):
            alike.setdefault((block.lane, call.tool, canonical(call.args)), []).append(call)
    for calls in alike.values():
        equal: dict[object, list[Call]] = {}
        for call in calls if len(calls) >= _REPEATED else ():
            equal.setdefault(call_key(call), []).append(call)
        for same in equal.values():
            first = same[0]
            if len(same) >= _REPEATED and first.error is None:
                words = call_text(first.tool, first.args, _SHORT)
                result = result_text(first.result) if first.derived else first.result
                yield Remark(first.event, f"{words} × {len(same)}, each time {short_json(result, _SHORT)}")


def _cut_off(story: Story) -> Iterator[Remark]:
    for block in story.blocks:
        end = block.turn.response if block.turn is not None else None
        if end is None or end.is_partial or end.error is not None:
            continue
        stop = end.stored_fields.get("stop_reason")
        by = unread(end) or (stop if type(stop) is str and stop in _CUT_OFF else None)
        if by is not None:
            yield Remark(end, f"an answer was cut off: stopped by {by}")


def unread(end: Event) -> str | None:
    """Return what ended a response that did not come to its end; None for one that did."""
    ended = end.stored_fields.get("ended")
    return _UNREAD.get(ended) if type(ended) is str and end.error is None else None


_UNREAD = {"closed": "the agent, which closed the stream", "cut": "the end of the connection"}


def _dropped(story: Story) -> Iterator[Remark]:
    """Yield the last request that leaves out what an earlier one of the same conversation had."""
    found: Remark | None = None
    keys = Keys()
    changed = [
        block
        for block in (story.blocks if story.is_whole else ())
        if block.turn is not None and not only_continues(block.turn, block.before)
    ]
    for block in changed[-_MOST_COMPARED:]:  # forwards, since a request builds on the one before
        assert block.turn is not None
        lost = dropped_from(block.turn, block.before, block.after, keys)
        if lost:
            named = " · ".join(plain(piece.text, 60) for piece in lost[:4])
            more = f" · {len(lost) - 4} more" if len(lost) > 4 else ""
            text = f"turn {block.number} leaves out {count(len(lost), 'message')} of the prompt before it: "
            found = Remark(block.turn.request, text + named + more)
    if found is not None:
        yield found
