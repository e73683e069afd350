"""The messages of recorded calls: what the model was sent, then its answer and the tools' results.

What the agent really sent stands in its next request, so results are taken from there; only where there
is none are they built from the recorded result, and a finding says so. A run without requests, as the first
article's loop records it, has responses and results only (``Answers``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import schema
from ..recording.calls import Call
from ..recording.index import Index
from ..recording.kept_conversations import KeptConversation
from ..tracefile.events.event import Event
from ..wire import pairing, reading
from ..wire.messages import tool_results
from ..wire.neutral import Outcome, ToolUse
from ..wire.providers import named
from .whole import (
    Answer,
    RecordedRequest,
    Whole,
    answer_messages,
    has_request,
    read_answer,
    read_request,
    sendable,
)

_AHEAD = 8
"""Requests of a lane looked through for the results of an answer; agents side by side may share a lane."""

Report = Callable[[str, str], None]
"""Takes a finding: its code and a sentence."""


def request_of(call: Call, kept: KeptConversation | None, report: Report) -> RecordedRequest:
    """Return the request of a model call, its messages up to where a provider would accept them."""
    request = read_request(call)
    if request.lost is not None:
        report("lost", f"the request of call {_name(call)} is not whole here: {request.lost}")
    if request.damaged:
        report("lost", f"of the request of call {_name(call)} is missing: {', '.join(request.damaged)}")
    if request.kept_elsewhere is not None:
        behind = "only the provider has what is behind that" if kept is None else str(kept)
        report("not-whole", f"the request builds on {request.kept_elsewhere}: {behind}")
    return request._replace(messages=accepted(request.messages, request, report))


def accepted(messages: list[Any], request: RecordedRequest, report: Report) -> list[Any]:
    """Return the longest beginning that a provider accepts, and say what was cut."""
    elsewhere = request.kept_elsewhere is not None
    prefix = pairing.consistent(messages, request.provider, kept_elsewhere=elsewhere)
    if prefix.length < len(messages):
        report("cut", why_cut(prefix, len(messages)))
    return messages[: prefix.length]


def why_cut(prefix: pairing.Prefix, length: int) -> str:
    """Return in words what keeps a conversation from being whole."""
    if prefix.orphans:
        reason = f"the result {', '.join(prefix.orphans)} belongs to no tool use before it"
    else:
        reason = f"no result for {', '.join(map(str, prefix.unanswered))}"
    return f"{reason}: cut to {prefix.length} of {length} messages"


def with_answer(call: Call, request: RecordedRequest, index: Index, limit: int, report: Report) -> list[Any]:
    """Return the request's messages, then the answer and results recorded before the event ``limit``."""
    end = call.end
    if request.lost is not None or end is None or end.index is None or end.index >= limit:
        return request.messages
    if call.error is not None or end.ended not in (None, "complete"):
        return request.messages  # a failure is not a message
    answer = read_answer(end, request.provider)
    if answer.lost is not None:
        report("lost", f"{answer.lost} (call {_name(call)})")
        return request.messages
    uses = [use for message in answer.messages for use in pairing.uses(message)]
    if not uses:
        _report_choices(answer.choices, report)
        return request.messages + answer.messages
    outcomes, unanswered = _outcomes(uses, index.tools_of(call), limit, report)
    if unanswered:
        more = f"no result for {', '.join(map(str, unanswered))}"
        report("cut", f"{more}: cut before the answer of call {_name(call)}")
        return request.messages
    seen = _seen(uses, request, index.calls_after(call, _AHEAD))
    if seen:
        return request.messages + seen
    built = pairing.result_messages(request.provider, list(zip(uses, outcomes, strict=True)))
    if built is None:
        forms = ", ".join(sorted({str(use.form) for use in uses}))
        report("cut", f"a result of {forms} cannot be built from the recording: cut before the answer")
        return request.messages
    _report_choices(answer.choices, report)
    report(
        "rebuilt", f"no request shows how the agent sent {_count(outcomes)}: built from the recorded results"
    )
    return request.messages + answer.messages + built


def _report_choices(choices: int, report: Report) -> None:
    if choices > 1:
        report("choice", f"the answer has {choices} choices; the first is taken")


def _count(outcomes: list[Outcome]) -> str:
    return "the result" if len(outcomes) == 1 else f"the {len(outcomes)} results"


def _outcomes(
    uses: list[ToolUse], tools: list[Call], limit: int, report: Report
) -> tuple[list[Outcome], list[ToolUse]]:
    """Return what came back for each use, or the uses for which nothing did."""
    ended = [tool for tool in tools if tool.end is not None and (tool.end.index or 0) < limit]
    found: list[Outcome] = []
    unanswered: list[ToolUse] = []
    for use in uses:
        tool = _answering(use, ended)
        outcome = outcome_of(tool, report) if tool is not None else None
        if tool is not None:
            ended.remove(tool)
        if outcome is None:
            unanswered.append(use)
        else:
            found.append(outcome)
    return found, unanswered


def _answering(use: ToolUse, ended: list[Call]) -> Call | None:
    """Return the call that carried out a use: by its id, and only where uses have none by name and order."""
    if use.id is not None:
        return next((tool for tool in reversed(ended) if tool_id(tool) == use.id), None)
    same = [tool for tool in ended if tool_id(tool) is None and tool.tool == use.name]
    return next((tool for tool in same if tool.begin is not None and tool.begin.args == use.args), None) or (
        same[0] if same else None
    )


def tool_id(tool: Call) -> str | None:
    """Return the provider's id of the use a tool call answers."""
    for event in (tool.end, tool.begin):
        fields = event.stored_fields if event is not None else {}
        for key in ("tool_id", "id", "tool_call_id", "tool_use_id"):
            if type(fields.get(key)) is str:
                return str(fields[key])
    return None


def outcome_of(tool: Call, report: Report) -> Outcome | None:
    """Return what a tool gave back; None, and a finding, if it is not in the recording whole."""
    end = tool.end
    assert end is not None
    restored = Whole(end)
    fields = end.whole_fields
    key = next((key for key in ("result", "output", "tool_output", "content") if key in fields), None)
    value = restored(fields[key]) if key is not None else None
    if restored.missing is not None:
        report("lost", f"the result of {tool.tool or 'a tool'} is not whole: {restored.missing}")
        return None
    error = tool.error
    if error is None:
        return Outcome(value)
    return Outcome(value if value is not None else str(error) or error.type or "error", failed=True)


def _seen(uses: list[ToolUse], request: RecordedRequest, later: list[Call]) -> list[Any]:
    """Return answer and results as the agent sent them in a later request; empty if none has them."""
    ids = [use.id for use in uses]
    for number, call in enumerate(later):
        if not has_request(call) or (None in ids and number):
            continue
        found = _slice(uses, request, read_request(call).messages)
        whole = pairing.consistent(
            request.messages + found, request.provider, kept_elsewhere=request.kept_elsewhere is not None
        )
        if found and whole.length == len(request.messages) + len(found):
            return found
    return []


def _slice(uses: list[ToolUse], request: RecordedRequest, messages: list[Any]) -> list[Any]:
    """Return the part of a conversation from the answer with these uses to their last result."""
    known = len(request.messages)
    names = [[use[:2] for use in pairing.uses(message)] for message in messages]
    wanted = [use[:2] for use in uses]
    # Without ids only the place distinguishes one use of a tool from the next.
    begin = known if uses[0].id is None else 0
    first = next((at for at in range(begin, len(messages)) if wanted[0] in names[at]), None)
    if first is None:
        return []
    start, floor, left = first, known if first >= known else 0, len(wanted)
    while start > floor and pairing.is_models(messages[start - 1]):
        start -= 1
    for at in range(first, len(messages)):
        left -= len(tool_results(messages[at]))
        if left <= 0:
            whole = [name for each in names[start : at + 1] for name in each] == wanted
            return messages[start : at + 1] if whole else []
    return []


def _name(call: Call) -> str:
    return call.id or f"at step {call.event.step}"


# Without requests: an assistant message is the recorded ``content``, a tool message the recorded ``output``.

_ARTICLE_CAP = 4000
"""Characters that the first article's loop keeps of an output."""


class Answers:
    """Builds the conversation event by event."""

    def __init__(self, prompt: str | list[Any] | None, calls: Iterable[Call], report: Report) -> None:
        self.messages: list[Any] = list(prompt) if isinstance(prompt, list) else []
        self.provider: str | None = reading.provider_of_request({"messages": self.messages})
        self._prompt = prompt if isinstance(prompt, str) else None
        self._prompt_length = len(self.messages)
        self._tools = {call.end.index: call for call in calls if call.end is not None}
        self._waiting: list[ToolUse] = []
        self._done: list[tuple[ToolUse, Outcome]] = []
        self._report = report

    def read(self, events: Iterable[Event]) -> list[Any]:
        """Return the messages up to where the recording is whole and a provider accepts them."""
        for event in events:
            kind = event.event_type
            if kind == schema.MODEL_RESPONSE and not self._answer(event):
                break
            if kind == schema.TOOL_RESULT and not self._result(event):
                break
        return self._finish()

    def _answer(self, event: Event) -> bool:
        """Take in an answer; False if its content is missing, so that nothing after it can be used."""
        if event.error is not None:
            return True  # a failure is not a message
        self._flush()
        answer = self._response(event)
        if answer.lost is not None:
            self._report("lost", f"{answer.lost} (step {event.step}): nothing after it can be used")
            return False
        if self.provider is None and answer.messages:
            self.provider = _provider_of(answer.messages[0])
        self.messages += answer.messages
        self._waiting = [use for each in answer.messages for use in pairing.uses(each)]
        return True

    def _response(self, event: Event) -> Answer:
        if event.whole_fields.get("body") is not None:
            return read_answer(event, reading.provider_of_response(event.body))
        restored = Whole(event)
        content = restored(event.whole_fields.get("content", event.whole_fields.get("text")))
        if restored.missing is not None:
            return Answer([], f"an answer is not whole: {restored.missing}")
        if not content:
            return Answer([], "an answer was recorded without its content")
        if isinstance(content, dict) and reading.answers(content):
            return answer_messages(content, reading.provider_of_response(content))
        if isinstance(content, dict) and ("parts" in content or "content" in content):
            return Answer([sendable(content)])
        if isinstance(content, str | list):
            return Answer([{"role": "assistant", "content": content}])
        return Answer([], "an answer is in no shape known here")

    def _result(self, event: Event) -> bool:
        tool = self._tools.get(event.index)
        use = self._use_answered_by(tool) if tool is not None else None
        if tool is None or use is None:
            self._report("orphan", f"the result at step {event.step} answers no tool use and is left out")
            return True
        outcome = outcome_of(tool, self._report)
        if outcome is None:
            return False
        if isinstance(outcome.value, str) and len(outcome.value) == _ARTICLE_CAP:
            length = f"the result of {use} is exactly {_ARTICLE_CAP:,} characters long"
            self._report("capped", f"{length}: if the agent's loop cut it there, the model saw more")
        self._waiting.remove(use)
        self._done.append((use, outcome))
        return True

    def _use_answered_by(self, tool: Call) -> ToolUse | None:
        """Return the use that a result answers: by id; by name and order only where uses have no ids."""
        id_ = tool_id(tool)
        for use in self._waiting:
            if use.id == id_ if use.id is not None else use.name == tool.tool:
                return use
        return None

    def _flush(self) -> None:
        """Append the results since the last answer; providers want those of one answer together."""
        done, self._done = self._done, []
        built = pairing.result_messages(self.provider, done) if done else []
        self.messages += built or []

    def _finish(self) -> list[Any]:
        self._flush()
        if self._prompt is not None:
            self.messages.insert(0, named(self.provider).user_message(self._prompt))
        prefix = pairing.consistent(self.messages, self.provider)
        if prefix.length < len(self.messages):
            self._report("cut", why_cut(prefix, len(self.messages)))
        messages = self.messages[: prefix.length]
        results = sum(len(tool_results(each)) for each in messages[self._prompt_length :])
        if results:
            self._report(
                "rebuilt", f"no request was recorded: {results} tool messages are built from the results"
            )
        return messages


def _provider_of(message: dict[str, Any]) -> str | None:
    if "parts" in message:
        return "gemini"
    return reading.provider_of_request({"messages": [message]})
