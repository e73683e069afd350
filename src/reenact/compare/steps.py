"""A run as steps: its input, each model call, each tool call, other events, its end.

Each step is a few digests, so that runs of any length are compared without their contents. Everything is
read in one pass; of a request only what is new in it is looked at, as it stands in its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import schema
from ..recording.calls import MODEL, TOOL, Call
from ..recording.derived_tools import DerivedCall, derived_tools, with_derived
from ..recording.index import MAIN
from ..recording.recording import Recording
from ..tracefile import dialects
from ..tracefile.events.event import Event, base_kind, error_of, tool_of
from ..tracefile.events.rebuilt_requests import answer_named, base_of, is_delta, is_repeated, kept, repeated
from ..wire import reading
from ..wire.equality_rules import DROPPED, DROPPED_AT_TOP, is_default, skeleton
from ..wire.json_values import mapping, string
from ..wire.messages import message_parts
from ..wire.neutral import ToolUse
from .digests import Comparable, Digest, Piece, ResponseWords, digest, digest_of_words, pieces_of, words_of
from .equal_lines import Stretch
from .masks import Masks

INPUT, EVENT, END, EQUAL = "input", "event", "end", "equal"
"""Kinds of steps beside calls; ``EQUAL`` stands for many steps that both runs have and nobody read."""

_Message = tuple[Piece, ...]

_CONVERSATIONS = 8
"""Conversations whose messages are remembered: as many as the recorder builds on."""

_TRANSPORT = frozenset((schema.AMBIENT, schema.SOCKET_MESSAGE, schema.MCP_ANSWER, schema.MCP_EXIT))
"""Events that record how something was carried out, not what was done."""

_NOT_CONTENT = frozenset({
    *schema.ENVELOPE, "call", "lane", "parent", "tot", "who", "thread", "host", "pid", "workspace", "attempt",
    "duration_ms", "latency_ms", "elapsed_ms", "elapsed", "duration", "latency", "ttft_ms", "usage", "tokens",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost", "cost_usd",
    "timestamp", "time", "started_at", "ended_at", "created_at", "run_id", "type", "id", "event_id",
    "request_id", "trace_id", "span_id", "tool_id", "tool_call_id", "frames", "raw", "source", "matched",
    "index", "seq", "turn",
})  # fmt: skip
"""Fields of an event that differ from run to run or repeat its place: clocks, latencies, usage, ids."""

_ANSWER_FIELDS = frozenset((
    "content", "text", "response", "output", "error", "error_type", "stop_reason", "finish_reason",
    "tool_calls",
))  # fmt: skip
"""Fields of a model call in one line that are not its request."""


class RequestFacts:
    """What a request holds."""

    __slots__ = ("added", "dropped", "lost", "settings")

    def __init__(self, settings: dict[str, Digest], added: list[Piece], dropped: list[Piece]) -> None:
        self.settings = settings
        """Digests of everything beside the conversation; ``model`` is the model's name."""
        self.added = added
        """What is new over the request that it continues."""
        self.dropped = dropped
        """What is no longer there."""
        self.lost: frozenset[str] = frozenset()


class Answered:
    """What a response holds."""

    __slots__ = ("at", "lost", "model", "stop", "uses", "words")

    def __init__(self, words: ResponseWords, uses: list[tuple[str, Digest]]) -> None:
        self.words = words
        self.uses = uses
        """Of ``words``, in the order of the response."""
        self.stop: str | None = None
        self.model: str | None = None
        self.at: dict[str, list[Piece]] = {}
        """By JSON pointer: how its messages come back in later requests."""
        self.lost: frozenset[str] = frozenset()


class StepFacts:
    """One step of a run."""

    __slots__ = (
        "answered", "args", "attempts", "block", "by", "call", "count", "error", "event", "key", "kind",
        "lane", "lost", "name", "number", "output", "request", "turn",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, event: Event | None, lane: str) -> None:
        self.kind, self.name, self.event, self.lane = kind, name, event, lane
        self.number = 0
        """1-based."""
        self.count = 1
        """Of an ``EQUAL`` one: the steps that it stands for."""
        self.turn: int | None = None
        self.call: Call | None = None
        self.by: StepFacts | None = None
        """The model call that led to a tool."""
        self.block: int = 0
        """Tools of one response share it: the order among them does not count."""
        self.args: Digest | None = None
        self.output: Digest | None = None
        self.error: Digest | None = None
        self.request: RequestFacts | None = None
        self.answered: Answered | None = None
        self.attempts = 1
        self.lost: frozenset[str] = frozenset()
        """Why args, output or error may hide a difference."""
        self.key: Digest = b""

    def seal(self) -> None:
        """Make the key by which steps of two runs are recognised."""
        own: list[Any] = [self.kind, self.name if self.kind != MODEL else ""]
        if self.answered is not None:
            own.append(digest_of_words(self.answered.words).hex())
        own += [None if each is None else each.hex() for each in (self.args, self.output, self.error)]
        self.key = digest(own)

    def __repr__(self) -> str:
        return f"<StepFacts {self.number} {self.kind} {self.name}>"


class RunSteps:
    """The steps of one run."""

    def __init__(
        self,
        recording: Recording,
        masks: Masks,
        progress: Callable[[str], None] | None = None,
        equal: Sequence[Stretch] = (),
    ) -> None:
        """``equal`` are stretches that need not be read, since the other run has them, too."""
        self.recording = recording
        self.equal = equal
        self.steps: list[StepFacts] = []
        self.tools: dict[str, list[StepFacts]] = {}
        """Tool calls by their id, and by their name."""
        self.by_words: dict[Digest, list[StepFacts]] = {}
        """The model calls that wrote a message."""
        _Reader(self, masks, progress).read()

    @property
    def count(self) -> int:
        """How many steps it has, with those that were not read."""
        return sum(step.count for step in self.steps)

    @property
    def lanes(self) -> dict[str, list[StepFacts]]:
        """The steps of each lane, lanes in order of appearance; input and end are those of the run."""
        found: dict[str, list[StepFacts]] = {}
        for step in self.steps:
            if step.kind not in (INPUT, END):
                found.setdefault(step.lane, []).append(step)
        return found

    def only(self, kind: str) -> StepFacts | None:
        """Return the input or the end of the run."""
        at = 0 if kind == INPUT else -1
        return self.steps[at] if self.steps[at].kind == kind else None

    def sources(self, piece: Piece, before: StepFacts) -> Iterator[StepFacts]:
        """Yield the steps that a piece of a request may come from, the nearest first: ids may repeat."""
        steps = (
            self.tools.get(piece.tool or "", ())
            if piece.role == "tool"
            else self.by_words.get(piece.digest, ())
        )
        return (step for step in reversed(steps) if step.number < before.number)


class _Conversation:
    """The messages of a request as pieces, and what stands beside them.

    Requests that only continue a conversation share one list; each knows how much of it is its own.
    """

    __slots__ = ("_pieces", "length", "settings")

    def __init__(self, pieces: list[_Message], settings: dict[str, Digest]) -> None:
        self._pieces, self.settings = pieces, settings
        self.length = len(pieces)

    def __getitem__(self, place: int) -> _Message:
        return self._pieces[place]

    def part(self, first: int = 0, last: int | None = None) -> list[_Message]:
        return self._pieces[first : self.length if last is None else min(last, self.length)]

    def continued(self, much: int, written: list[_Message], settings: dict[str, Digest]) -> _Conversation:
        """Return a conversation that begins with so many messages of this one."""
        tail = self.part(much)
        if len(self._pieces) == self.length and written[: len(tail)] == tail:
            self._pieces += written[len(tail) :]
            return _Conversation(self._pieces, settings)
        return _Conversation([*self.part(0, much), *written], settings)


class _Reader:
    """Reads a recording into steps."""

    def __init__(self, run: RunSteps, masks: Masks, progress: Callable[[str], None] | None) -> None:
        self._run, self._recording = run, run.recording
        self._progress = progress
        self._values = Comparable(masks)
        self._request_facts: dict[int, RequestFacts] = {}
        self._answered: dict[int, Answered] = {}
        self._digests: dict[int, tuple[Digest | None, Digest | None, Digest | None, frozenset[str]]] = {}
        """Of other events by their index: arguments, output, error, what is lost."""
        self._by_call: dict[str, Answered] = {}
        self._conversations: dict[str, _Conversation] = {}
        self._in_lane: dict[tuple[str, str], _Conversation] = {}
        self._base: _Conversation | None = None
        """What the request at hand builds on."""
        self._tool_ids: dict[int, str] = {}
        self._others: list[Event] = []
        self._used: Counter[str] = Counter()
        """Tool uses that no recorded call took so far, by id; those without one under their name."""

    # the pass over the events ---------------------------------------------------------------------

    def read(self) -> None:
        numbers = self._numbers()
        calls: Sequence[Call] = self._recording.calls_of_all(self._visit, numbers)
        if any(much > 0 for much in self._used.values()):
            whole = numbers is None
            calls = (
                self._recording.calls(derived=True) if whole else with_derived(calls, derived_tools(calls))
            )
        self._steps(calls)

    def _numbers(self) -> list[int] | None:
        """Return the events to be read; None for all."""
        if not self._run.equal:
            return None
        ends = [0, *(stretch.last for stretch in self._run.equal)]
        begins = [*(stretch.first for stretch in self._run.equal), self._recording.count()]
        return [number for end, begin in zip(ends, begins, strict=True) for number in range(end, begin)]

    def _visit(self, event: Event, fields: dict[str, Any], line: bytes | None) -> None:
        index = event.index
        if index is None:
            return
        if self._progress is not None and index % 2000 == 0:
            self._progress(f"reading {self._recording.name}: event {index:,} of {self._recording.count():,}")
        self._values.line(line)
        kind = base_kind(event)
        if kind == schema.MODEL_REQUEST:
            self._request(event, index, fields)
        elif kind == schema.MODEL_RESPONSE:
            self._response(index, fields, error_of(event, fields))
        elif kind == schema.LLM_CALL:
            self._request_in_one(event, index, fields)
            self._response(index, fields, error_of(event, fields))
        elif kind not in _TRANSPORT:
            if line is None and event.is_partial:
                self._values.lost.add("longer than 64 MB")
            self._other(event, index, kind, fields)

    def _other(self, event: Event, index: int, kind: str, fields: dict[str, Any]) -> None:
        values, name = self._values, tool_of(event.kind, fields) or ""
        if "tool" in kind:
            args = next((fields[key] for key in dialects.ARGS_KEYS if key in fields), None)
            keys = dialects.RESULT_KEYS[:3] if event.is_ours else dialects.RESULT_KEYS
            output = next((fields[key] for key in keys if key in fields), None)
            args_digest = None if args is None else values.of(args, "tool", name, "args")
            output_digest = None if output is None else values.of(output, "tool", name, "result")
            if kind in (schema.TOOL_CALLED, schema.TOOL_CALL):
                tool_id = string(fields.get("tool_id"))
                self._used[tool_id if tool_id is not None and tool_id in self._used else name] -= 1
                if tool_id is not None:
                    self._tool_ids[index] = tool_id
        else:
            content = {key: item for key, item in fields.items() if key not in _NOT_CONTENT}
            args_digest, output_digest = values.of(content, "event", kind, "fields"), None
            self._others.append(event)
        error = error_of(event, fields)
        error_digest = None if error is None else values.error(error)
        self._digests[index] = args_digest, output_digest, error_digest, values.taken()

    def _request(self, event: Event, index: int, fields: dict[str, Any]) -> None:
        body = fields.get("body")
        call = string(fields.get("call"))
        self._base = None
        conversation = self._stored(event, fields, body) if type(body) is dict else _Conversation([], {})
        if type(body) is not dict and body is not None:
            self._values.value(body)  # notes what is lost
        if "model" not in conversation.settings:
            model = string(fields.get("model")) or reading.model_of(body, string(fields.get("url")))
            if model is not None:
                conversation.settings["model"] = digest(model)
        if call is not None:
            self._conversations.pop(call, None)
            self._conversations[call] = conversation
            if len(self._conversations) > _CONVERSATIONS:
                del self._conversations[next(iter(self._conversations))]
        self._request_facts[index] = self._new_in(conversation, event, fields)

    def _new_in(self, conversation: _Conversation, event: Event, fields: dict[str, Any]) -> RequestFacts:
        lane = event.writer, string(fields.get("lane")) or "main"
        dropped: list[_Message] = []
        if not {*mapping(fields.get("body")), *kept(fields)}.isdisjoint(reading.KEPT_BY):
            added = conversation.part()  # the provider has what was before
        else:
            base, much = self._base, _kept_messages(fields)
            if base is not None and much != 0:  # what it continues, of the conversations of its lane
                added, dropped = _changed(base, conversation, base.length if much is None else much)
            else:
                before = self._before(event, lane)
                added, dropped = _changed(before or _Conversation([], {}), conversation, None)
        self._in_lane[lane] = conversation
        facts = RequestFacts(
            conversation.settings,
            [piece for pieces in added for piece in pieces],
            [piece for pieces in dropped for piece in pieces],
        )
        facts.lost = self._values.taken()
        return facts

    def _stored(self, event: Event, fields: dict[str, Any], body: dict[str, Any]) -> _Conversation:
        """Return a request from what is written in its line and what is known of the one it builds on."""
        base = self._known(base_of(fields) or "") if is_delta(fields) else None
        if base is None and is_delta(fields):
            body = mapping(event.stored_body)
        self._base = base
        if base is None:
            return self._whole(event, body)
        keep = kept(fields)
        settings = {key: each for key, each in base.settings.items() if _is_kept(key, keep)}
        written = self._written(event, body, settings)
        much = _kept_messages(fields)
        return base.continued(base.length if much is None else much, written, settings)

    def _whole(self, event: Event, body: dict[str, Any]) -> _Conversation:
        settings: dict[str, Digest] = {}
        return _Conversation(self._written(event, body, settings), settings)

    def _written(self, event: Event, body: dict[str, Any], settings: dict[str, Digest]) -> list[_Message]:
        """Return the messages in a body; what else stands in it is put into the settings."""
        key = reading.conversation_key(body)
        for name, value in body.items():
            ignored = name == key or name in ("input", "prompt", "messages", *reading.KEPT_BY)
            if ignored or name in DROPPED_AT_TOP or name in DROPPED or is_default(name, value):
                settings.pop(_setting(name), None)
            else:
                settings[_setting(name)] = self._setting(name, value)
        return [tuple(self._pieces(event, each)) for each in (_bare(body) if key is None else body[key])]

    def _known(self, call: str) -> _Conversation | None:
        """Return the conversation of an earlier request; one that is not remembered is read again."""
        found = self._conversations.get(call)
        if found is None and (event := self._recording.request_of(call)) is not None:
            found = self._read_again(event)
        return found

    def _read_again(self, event: Event) -> _Conversation:
        at_hand, self._values = self._values, Comparable(self._values.masks)
        try:
            return self._whole(event, mapping(event.stored_body))
        finally:
            self._values = at_hand

    def _before(self, event: Event, lane: tuple[str, str]) -> _Conversation | None:
        """Return the conversation of the request before another one of its lane."""
        for stretch in self._run.equal:
            if stretch.last == event.index:
                return self._read_again(self._recording.events[stretch.request])
        return self._in_lane.get(lane)

    def _setting(self, name: str, value: Any) -> Digest:
        masked = self._values.masks.masked({name: value}, "model", "*", "settings")
        return digest(self._values.value(skeleton(masked[name], [], key=name)))

    def _pieces(self, event: Event, element: Any) -> list[Piece]:
        """Return the pieces of a message as it is written: it may repeat another one or a response."""
        call = answer_named(element)
        if call is not None:
            answered, at = self._by_call.get(call), element.get("at", "")
            if answered is not None and at in answered.at:
                return answered.at[at]
        same = repeated(element)
        if same is not None and _moves_marks_only(element):
            base = self._conversations.get(same[0])
            if base is not None and type(same[1]) is int and 0 <= same[1] < base.length:
                return list(base[same[1]])
        if call is not None or is_repeated(element):
            element = event.stored_message(element)
        return pieces_of(element, self._values)

    def _request_in_one(self, event: Event, index: int, fields: dict[str, Any]) -> None:
        content = {key: item for key, item in fields.items() if key not in _NOT_CONTENT | _ANSWER_FIELDS}
        self._request(event, index, {"body": content, "lane": fields.get("lane"), "call": None})
        if not self._request_facts[index].added:
            del self._request_facts[index]  # only the response was recorded

    def _response(self, index: int, fields: dict[str, Any], error: Any) -> None:
        body, provider, values = fields.get("body"), string(fields.get("provider")), self._values
        at: dict[str, list[Piece]] = {}
        messages: list[tuple[str, dict[str, Any]]] = []
        if type(body) is dict:
            body = values.value(body)
            read = reading.Reading(body, provider)
            messages = read.answers()
            parts = [part for _, message in messages for part in message_parts(message)]
            if len(messages) > 1:
                at = {pointer: _as_sent(message, values) for pointer, message in messages}
            stop = string(fields.get("stop_reason")) or read.stop_reason()
            if not messages and error is None and (text := reading.text(body, provider)):
                parts = list(message_parts({"role": "assistant", "content": text}))
        else:
            content = values.value(next((fields[key] for key in _ANSWER_FIELDS if fields.get(key)), None))
            is_message = type(content) is dict and ("content" in content or "parts" in content)
            message = {"role": "assistant", **(content if is_message else {"content": content})}
            parts = list(message_parts(message)) if content is not None and error is None else []
            stop = string(fields.get("stop_reason"))
        uses = [(part.name, digest(part.args), part.id) for part in parts if isinstance(part, ToolUse)]
        for name, _, use_id in uses:
            self._used[use_id or name] += 1
        answered = Answered(words_of(parts), [(name, args) for name, args, _ in uses])
        if len(messages) == 1:
            at = {messages[0][0]: [Piece("assistant", digest_of_words(answered.words))]}
        answered.stop, answered.at = stop, at
        answered.model = string(fields.get("model"))
        answered.lost = values.taken()
        self._answered[index] = answered
        self._digests[index] = None, None, None if error is None else values.error(error), values.taken()
        if (call := string(fields.get("call"))) is not None and at:
            self._by_call[call] = answered

    # steps from calls and other events ------------------------------------------------------------

    def _steps(self, calls: Sequence[Call]) -> None:
        found: list[tuple[tuple[int, int], StepFacts]] = []
        model_steps: dict[int, StepFacts] = {}
        latest: dict[tuple[str, str], StepFacts] = {}
        turns = 0
        equal = list(self._run.equal)
        index = self._recording.index
        for call in calls:
            place = (call.event.index or 0, call.order + 1 if isinstance(call, DerivedCall) else 0)
            while equal and equal[0].first < place[0]:
                found.append(((equal[0].first, 0), _unread(equal[0])))
                turns += equal.pop(0).turns
            lane = index.lane_of(call) if not self._run.equal else MAIN
            if call.kind == MODEL:
                before = latest.get((call.event.writer, call.lane)) if call.attempt > 1 else None
                step = before or StepFacts(MODEL, "", call.event, lane)
                if before is None:
                    turns += 1
                    found.append((place, step))
                else:
                    step.attempts += 1
                step.turn = step.turn or turns
                model_steps[id(call)] = latest[call.event.writer, call.lane] = step
                self._fill_model(step, call)
            else:
                step = StepFacts(call.kind, call.tool or base_kind(call.event), call.event, lane)
                by = model_steps.get(id(call.requested_by))
                if by is not None and call.kind == TOOL:
                    step.by, step.turn, step.block = by, by.turn, id(by)
                self._fill_tool(step, call)
                found.append((place, step))
        of_calls = {event.index for call in calls for event in (call.begin, call.end) if event is not None}
        for event in self._others:
            if event.index is not None and event.index not in of_calls:
                lane = index.lane_at(event.index) if not self._run.equal else MAIN
                step = StepFacts(EVENT, event.kind, event, lane)
                step.args, step.output, step.error, step.lost = self._digests[event.index]
                found.append(((event.index, 0), step))
        found.sort(key=lambda each: each[0])
        self._finish([step for _, step in found])

    def _finish(self, steps: list[StepFacts]) -> None:
        run, values = self._run, self._values
        values.line(None)
        start, end = self._recording.input, self._recording.end
        if start is not None:
            first = StepFacts(INPUT, INPUT, self._recording.start, steps[0].lane if steps else "main")
            first.args, first.lost = values.of(start, "input", "", "value"), values.taken()
            steps.insert(0, first)
        last = StepFacts(END, END, end, steps[0].lane if steps else "main")
        error = self._recording.error
        last.args = digest(self._recording.status)
        last.error, last.lost = None if error is None else values.error(error), values.taken()
        steps.append(last)
        number = 1
        for step in steps:
            step.number = number
            number += step.count
            step.seal()
            if step.kind == TOOL:
                run.tools.setdefault(step.name, []).append(step)
                if step.call is not None and (tool_id := self._tool_id(step.call)) is not None:
                    run.tools.setdefault(tool_id, []).append(step)
            elif step.answered is not None:
                run.by_words.setdefault(digest_of_words(step.answered.words), []).append(step)
        run.steps = steps

    def _tool_id(self, call: Call) -> str | None:
        return call.tool_id if isinstance(call, DerivedCall) else self._tool_ids.get(call.event.index or 0)

    def _fill_model(self, step: StepFacts, call: Call) -> None:
        step.call = call
        begin, end = call.begin, call.end
        if step.request is None and begin is not None and begin.index is not None:
            step.request = self._request_facts.get(begin.index)
        step.answered, step.error, step.lost = None, None, frozenset()
        if end is not None and end.index is not None:
            step.answered = self._answered.get(end.index)
            step.error = self._digests.get(end.index, (None,) * 4)[2]
            if step.answered is not None:
                step.lost = step.answered.lost

    def _fill_tool(self, step: StepFacts, call: Call) -> None:
        step.call = call
        if isinstance(call, DerivedCall):
            self._fill_derived(step, call)
            return
        for event in (call.begin, call.end):
            if event is None or event.index is None or event.index not in self._digests:
                continue
            args, output, error, lost = self._digests[event.index]
            step.args = args if step.args is None else step.args
            step.output = output if event is call.end else step.output
            step.error = error if error is not None else step.error
            step.lost |= lost
        if call.error is not None and step.error is None:
            step.error = self._values.error(call.error)

    def _fill_derived(self, step: StepFacts, call: DerivedCall) -> None:
        values, name = self._values, call.tool or ""
        by = step.by.answered if step.by is not None else None
        values.line(None)
        if by is not None and call.order < len(by.uses) and not values.masks.paths("tool", name, "args"):
            step.args = by.uses[call.order][1]
        else:
            step.args = values.of(call.args, "tool", name, "args")
        if call.end is not None:
            step.output = values.of(call.result, "tool", name, "result")
        if call.error is not None:
            step.error = values.error(call.error)
        step.lost = values.taken()


def _unread(stretch: Stretch) -> StepFacts:
    step = StepFacts(EQUAL, "", None, MAIN)
    step.count = stretch.steps
    return step


def _bare(body: dict[str, Any]) -> list[Any]:
    """Return a prompt that is a text as the one message it is."""
    text = body.get("input", body.get("prompt"))
    return [] if text is None else [{"role": "user", "content": text}]


def _is_kept(setting: str, keep: dict[str, Any]) -> bool:
    return any(much is True and _setting(name) == setting for name, much in keep.items())


def _setting(name: str) -> str:
    return "system" if name in reading.SYSTEM else "tools" if name in reading.TOOLS else name


def _as_sent(message: dict[str, Any], values: Comparable) -> list[Piece]:
    """Return a message of a response as it comes back in a request."""
    return pieces_of(
        message if "role" in message or "type" in message else {"role": "assistant", **message}, values
    )


def _moves_marks_only(element: dict[str, Any]) -> bool:
    """True if a repeated message differs from the earlier one only in marks of the provider's cache."""
    pointers = [*(element.get("drop") or ()), *(element.get("set") or ())]
    return all(type(each) is str and each.rpartition("/")[2] in DROPPED for each in pointers)


def _kept_messages(fields: dict[str, Any]) -> int | None:
    """Return how many messages of its base a request keeps; None for all."""
    keep = kept(fields)
    much = next((keep[name] for name in schema.LISTS if name in keep), 0)
    return None if much is True else much if type(much) is int else 0


def _changed(
    old: _Conversation, new: _Conversation, first: int | None
) -> tuple[list[_Message], list[_Message]]:
    """Return what is new in a conversation and what is gone from it, as sets; ``first`` messages are kept."""
    if first is None:
        first, last = 0, min(old.length, new.length)
        while first < last:  # halving, so that all comparisons are in C
            middle = (first + last + 1) // 2
            if old.part(first, middle) == new.part(first, middle):
                first = middle
            else:
                last = middle - 1
    gone = Counter(old.part(first))
    added = []
    for message in new.part(first):
        if gone[message] > 0:
            gone[message] -= 1
        else:
            added.append(message)
    return added, list((+gone).elements())
