"""``replay()``: a recorded run -> a message list that a provider accepts.

Nothing is invented. What is missing in the recording, or would make a provider refuse the list, is left out
and named in ``findings``. (To run the agent's own code again, see ``reenact.rerun``.)
"""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from ..errors import NoSuchEvent, TraceFileError, UsageError
from ..recording.calls import MODEL, Call
from ..recording.kept_conversations import KEPT, KeptConversation, kept_before
from ..recording.recording import Recording
from ..tracefile.findings import Finding
from ..wire import convert
from ..wire.providers import named
from .from_calls import Answers, request_of, with_answer
from .whole import RecordedRequest, has_request, placeholders

HOLES = ("cut", "lost", "orphan", "no-request", "no-content")
"""Findings that mean messages are missing; ``strict`` raises for them."""


class Messages(list[Any]):
    """A message list in a provider's own shape, with what else its request holds."""

    def __init__(
        self,
        messages: list[Any],
        *,
        provider: str | None = None,
        key: str = "messages",
        tools: list[Any] | None = None,
        params: dict[str, Any] | None = None,
        model: str | None = None,
        findings: list[Finding] | None = None,
        path: str = "",
        kept: list[Any] | None = None,
        missing: str | None = None,
    ) -> None:
        super().__init__(messages)
        self.provider = provider
        """``anthropic openai openai-responses gemini bedrock ollama``; None if the shape does not tell."""
        self.key = key
        """What a request calls the list: ``messages``, ``input`` or ``contents``."""
        self.tools: list[Any] = tools or []
        self.params: dict[str, Any] = params or {}
        """The rest of the request: model, system prompt, limits."""
        self.model = model
        """Also where the request says it in its URL only."""
        self.findings: list[Finding] = findings or []
        self.path = path
        """The trace file."""
        self.kept: list[Any] = kept or []
        """Messages before this list that the provider had already; ``request()`` does not send them."""
        self.missing = missing
        """In words what else the provider had, which is not recorded; None if nothing is missing."""

    def request(self) -> dict[str, Any]:
        """Return the whole request body: parameters, tools if there are any, and this list."""
        key, *inside = named(self.provider).TOOLS_PATH
        tools = {key: self.tools} if self.tools and not inside else {}  # else they are among the parameters
        return {**self.params, **tools, self.key: list(self)}

    @overload
    def to(self, target: Literal["text"]) -> str: ...
    @overload
    def to(self, target: Literal["anthropic", "openai", "gemini"]) -> Messages: ...
    def to(self, target: str) -> Messages | str:
        """Return the same in the shape of ``anthropic``, ``openai`` or ``gemini``, or as ``text`` to read."""
        if target not in convert.TARGETS:
            raise UsageError(f"to({target!r})", hint=f"there are {', '.join(convert.TARGETS)}")
        if target == "text":
            return self._text()
        if target == self.provider:
            return Messages(self, provider=target, key=self.key, tools=self.tools, params=self.params,
                            model=self.model, findings=list(self.findings), path=self.path,
                            kept=self.kept, missing=self.missing)  # fmt: skip
        converted = convert.convert(self, self.tools, self.params, self.provider, target)
        kept = convert.convert(self.kept, [], {}, self.provider, target).messages if self.kept else []
        findings = [
            Finding("lost", f"{target} has no place for {what}", self.path) for what in converted.lost
        ]
        findings += [Finding("converted", note, self.path) for note in converted.notes]
        key = named(target).MESSAGES_KEY
        return Messages(
            converted.messages,
            provider=target,
            key=key,
            tools=converted.tools,
            params=converted.params,
            model=self.model,
            findings=[*self.findings, *findings],
            path=self.path,
            kept=kept,
            missing=self.missing,
        )

    def _text(self) -> str:
        text = convert.as_text(self, self.tools, self.params, self.provider)
        if not self.kept:
            return text
        kept = convert.as_text(self.kept, [], {}, self.provider)
        return f"({KEPT})\n\n{kept}\n(sent)\n\n{text}"


def replay(
    path: str | os.PathLike[str],
    n: int | None = None,
    *,
    turn: int | None = None,
    call: str | None = None,
    prompt: str | list[Any] | None = None,
    strict: bool = False,
    run: str | None = None,
    blobs: str | None = None,
) -> Messages:
    """Return the messages after the first ``n`` events, or as the model saw them in a turn or call.

    Without any of the three, those of the whole run. ``prompt`` is the user's, for runs without requests.
    Nothing runs: this is ``reenact messages``. To run the agent again, as ``reenact replay``, is
    ``reenact.rerun``; to continue live from a call ``reenact.fork``.
    """
    check(n, turn, call, prompt)
    return messages_of(Recording.load(path, run, blobs=blobs), n, turn, call, prompt, strict)


def check(n: object, turn: object, call: object, prompt: object) -> None:
    """Raise UsageError for arguments of ``replay`` that make no sense."""
    named = [name for name, value in (("n", n), ("turn", turn), ("call", call)) if value is not None]
    if len(named) > 1:
        raise UsageError(
            f"replay() takes one of n, turn and call, not {' and '.join(named)}", hint="pass only one of them"
        )
    for name, number, least in (("n", n, 0), ("turn", turn, 1)):
        if number is not None and (type(number) is not int or number < least):
            raise UsageError(f"{name}={number!r}", hint=f"{name} is a whole number from {least}")
    if call is not None and (type(call) is not str or not call):
        raise UsageError(f"call={call!r}", hint="call is a call id or its beginning")
    if prompt is not None and not isinstance(prompt, str):
        if not isinstance(prompt, list) or not all(isinstance(message, dict) for message in prompt):
            raise UsageError(f"prompt={prompt!r:.80}", hint="prompt is a text or a list of messages")


def messages_of(
    recording: Recording,
    n: int | None,
    turn: int | None,
    call: str | None,
    prompt: str | list[Any] | None,
    strict: bool,
) -> Messages:
    """Return the messages of an open recording; the arguments are those of ``replay``, checked."""
    player = _Player(recording, prompt)
    if turn is not None:
        result = player.request_messages(_turn(recording, turn))
    elif call is not None:
        result = player.request_messages(_call(recording, call))
    else:
        result = player.after(recording.count() if n is None else min(n, recording.count()))
    hidden = placeholders([*result, result.params, result.tools])
    if hidden:
        player.report("redacted", f"placeholders stand where secrets were, in {hidden} of the texts")
    result.findings = [*recording.findings, *player.findings]
    result.path = recording.path
    hole = next((finding for finding in player.findings if finding.code in HOLES), None)
    if strict and hole is not None:
        raise TraceFileError(
            hole.message, path=recording.path, hint="without strict, what is whole before it is returned"
        )
    return result


def _turn(recording: Recording, number: int) -> Call:
    turns = recording.turns()
    if number > len(turns):
        raise NoSuchEvent(
            f"{recording.name} has no turn {number}",
            asked=f"turn:{number}",
            hint=f"it has {len(turns)} {'turn' if len(turns) == 1 else 'turns'}",
        )
    return turns[number - 1].call


def _call(recording: Recording, prefix: str) -> Call:
    event = recording.event(f"call:{prefix}")
    return next(call for call in recording.calls() if call.event == event)


def _messages_of(messages: list[Any], request: RecordedRequest, kept: KeptConversation | None) -> Messages:
    before = [] if kept is None else [each.message for each in kept.messages]
    return Messages(messages, provider=request.provider, key=request.key, tools=request.tools,
                    params=request.params, model=request.model, kept=before,
                    missing=None if kept is None else kept.missing)  # fmt: skip


class _Player:
    """One replay."""

    def __init__(self, recording: Recording, prompt: str | list[Any] | None) -> None:
        self.recording = recording
        self.prompt = prompt
        self.findings: list[Finding] = []
        self.index = recording.index
        self.has_requests = any(has_request(call) for call in recording.calls() if call.kind == MODEL)
        if self.has_requests and prompt is not None:
            self.report("prompt-unused", "the recorded requests have their own prompt; prompt= is not used")

    def report(self, code: str, message: str) -> None:
        self.findings.append(Finding(code, message, self.recording.path))

    def after(self, limit: int) -> Messages:
        """Return the messages there were after so many events."""
        call = self.index.model_call_of(self.recording.events[limit - 1]) if limit else None
        if not self.has_requests:
            return self._from_answers(limit, call)
        found = self._with_request(call)
        if found is None:
            if limit:
                self.report(
                    "no-request", f"no request was recorded among the first {limit} events of its lane"
                )
            return Messages([])
        self._report_lane(found)
        kept = self._kept(found)
        request = request_of(found, kept, self.report)
        messages = (
            with_answer(found, request, self.index, limit, self.report) if found is call else request.messages
        )
        return _messages_of(messages, request, kept)

    def _kept(self, call: Call) -> KeptConversation | None:
        return kept_before(self.index, call.event, call.event.stored_body)

    def _with_request(self, call: Call | None) -> Call | None:
        """Return the call, or the nearest before it in its lane whose request is recorded."""
        missing = 0
        while call is not None and not has_request(call):
            call, missing = next(iter(self.index.calls_before(call)), None), missing + 1
        if missing and call is not None:
            self.report(
                "lost", "the newest answer was recorded without its request: cut to the request before it"
            )
        return call

    def _report_lane(self, call: Call) -> None:
        names = self.index.lanes
        if len(names) > 1:
            writer, lane = call.event.writer, call.lane
            own = lane if len({each for each, _ in names}) == 1 else f"{lane} of writer {writer}"
            self.report("lane", f"the run has {len(names)} lanes side by side; this is {own}")

    def request_messages(self, call: Call) -> Messages:
        """Return what the model saw in a call, or in the one that led to a tool call."""
        model = call if call.kind == MODEL else call.requested_by
        if model is None:
            self.report("no-request", "no model call led to this one")
            return Messages([])
        if not self.has_requests:
            return self._from_answers(model.event.index or 0, model)
        if not has_request(model):
            return self.after((model.event.index or 0) + 1)
        kept = self._kept(model)
        request = request_of(model, kept, self.report)
        return _messages_of(request.messages, request, kept)

    def _from_answers(self, limit: int, call: Call | None) -> Messages:
        writer = call.event.writer if call is not None else None
        if self._is_silent():
            self.report("no-content", "the recording holds no message: neither requests nor responses")
            return Messages([])
        if self.prompt is None:
            self.report("no-prompt", "the prompt was not recorded; prompt= puts one in front")
        answers = Answers(self.prompt, self.recording.calls(), self.report)
        messages = answers.read(e for e in self.recording.events[:limit] if e.writer == writer)
        key = "contents" if answers.provider == "gemini" else "messages"
        return Messages(messages, provider=answers.provider, key=key)

    def _is_silent(self) -> bool:
        """True if no answer of the run says anything, as in a log of tokens and durations."""
        ends = (call.end for call in self.recording.calls() if call.kind == MODEL)
        content_keys = ("content", "text", "body")
        return not any(
            end is not None and any(end.stored_fields.get(key) is not None for key in content_keys)
            for end in ends
        )
