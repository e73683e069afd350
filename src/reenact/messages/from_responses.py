"""Messages from responses and tool results alone, as the first article's loop records them: no request.

An assistant message is the recorded ``content``, a tool message the recorded ``output``, whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import schema
from ..recording.calls import Call
from ..tracefile.event import Event
from ..wire import pairing, reading
from ..wire.messages import tool_results
from ..wire.neutral import Outcome, ToolUse
from ..wire.providers import named
from .from_requests import Report, outcome_of, tool_id, why_cut
from .parts import Answer, answer_messages, read_answer, sendable
from .whole_values import Whole

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
            return True  # a failure is no message
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
