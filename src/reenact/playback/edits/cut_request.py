"""The request at the cut, which edits are told in: its conversation, and whose it is.

Later requests are held against it: those of the same agent get the same settings, those that carry on the
same conversation get the same changes in it.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ...errors import UsageError
from ...wire import reading
from ...wire.json_values import mapping, string
from ..matching.request import MODEL, element_part
from ..matching.tape import RecordedCall, Tape

_SAME_PATHS = (
    (":streamGenerateContent", ":generateContent"),
    (":streamRawPredict", ":rawPredict"),
    ("/converse-stream", "/converse"),
    ("/invoke-with-response-stream", "/invoke"),
)
_DEPLOYMENT = re.compile(r"/deployments/[^/]+/")
_DIGITS = re.compile(r"\d+")
_SYSTEM_ROLES = ("system", "developer")


class Relation(NamedTuple):
    """What a request has to do with the one at the cut."""

    is_agents: bool
    """The same agent makes it: settings hold for it."""
    carries: bool
    """Its conversation begins with the whole one at the cut, whatever the system prompt is."""
    is_cut: bool
    """It is the request at the cut, or the same again."""
    shares: bool
    """It begins as the conversation at the cut does, or what can be told of it is the same."""


class CutRequest:
    """The request at the cut. Best built from what the agent asks now: the recording is redacted."""

    def __init__(self, body: Any, url: str | None, *, is_tools: bool = False) -> None:
        self.body: dict[str, Any] = mapping(body)
        self.url = url or ""
        self.is_tools = is_tools
        """The cut is at a tool that this request's answer asked for: its result is no matter of a request."""
        self.provider = reading.provider_of_request(body, url)
        self.key, self.messages = conversation_of(self.body)

    @classmethod
    def at(cls, call: RecordedCall, tape: Tape) -> CutRequest:
        """Return the recorded request of a call; of a tool the one whose answer asked for it."""
        asker = call if call.kind == MODEL else tape.call(call.parent or "")
        if asker is None or asker.kind != MODEL:
            before = (each for each in reversed(tape.calls[: call.number]) if each.kind == MODEL)
            asker = next((each for each in before if each.lane == call.lane), None)
        if asker is None:
            raise UsageError(
                f"no model call leads to {call.label()}, so there is no request to change",
                hint="cut at a model call",
            )
        request = asker.request
        return cls(request.body, request.url, is_tools=asker is not call)

    @cached_property
    def endpoint(self) -> str:
        return endpoint_of(self.url)

    @cached_property
    def system(self) -> str:
        return system_of(self.body)

    @cached_property
    def tools(self) -> tuple[str, ...]:
        return tools_of(self.body)

    @property
    def kept_elsewhere(self) -> str | None:
        """The answer or conversation at the provider that this request goes on with."""
        return reading.kept_conversation(self.body)

    def relation(self, body: dict[str, Any], url: str) -> Relation:
        """Hold a request against this one."""
        if endpoint_of(url) != self.endpoint:
            return Relation(False, False, False, False)
        spoken, now = without_own_words(self.messages), without_own_words(conversation_of(body)[1])
        common = common_start(spoken, now)
        same_kept = reading.kept_conversation(body) == self.kept_elsewhere
        shares = same_kept and common > 0
        alike = _alike(system_of(body), self.system)
        tools = tools_of(body) == self.tools
        # Who has neither is told by the model it asks, or an id that it goes on by.
        is_told = bool(self.system or self.tools or reading.kept_conversation(body))
        is_told = is_told or reading.model_of(body, url) == reading.model_of(self.body, self.url)
        # One of the two may change from call to call; an agent that was handed the work has neither.
        is_agents = (alike and tools and is_told) or (shares and (alike or (tools and bool(self.tools))))
        carries = shares and common == len(spoken) and (is_agents or common >= 2)
        return Relation(is_agents, carries, carries and len(now) == common, shares and is_agents)


def conversation_of(body: dict[str, Any]) -> tuple[str | None, list[Any]]:
    """Return where the conversation stands in a request, and its messages; a bare text is one of them."""
    key = reading.conversation_key(body)
    if key is not None:
        return key, body[key]
    if string(body.get("input")) and "messages" not in body:
        return "input", [{"role": "user", "content": body["input"]}]
    return None, []


def is_same(one: Any, other: Any) -> bool:
    """True if two messages say the same: ids and cache marks make no difference."""
    return bool(one == other) or digest(one) == digest(other)


def digest(message: Any) -> bytes:
    return element_part(message).normal


def common_start(one: list[Any], other: list[Any]) -> int:
    """Return how many messages two conversations begin with in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if not is_same(mine, theirs):
            break
        count += 1
    return count


def own_words(messages: list[Any]) -> int:
    """Return how many messages at the beginning are the agent's prompt."""
    count = 0
    while count < len(messages) and is_system(messages[count]):
        count += 1
    return count


def without_own_words(messages: list[Any]) -> list[Any]:
    """Return a conversation without the system prompt it begins with."""
    return messages[own_words(messages) :]


def is_system(message: Any) -> bool:
    """True for a system prompt that stands among the messages."""
    return mapping(message).get("role") in _SYSTEM_ROLES


def system_of(body: dict[str, Any]) -> str:
    """Return the system prompt as text, wherever it stands."""
    beside = [reading.system_text(body[key]) for key in reading.SYSTEM if body.get(key)]
    _, messages = conversation_of(body)
    return "\n".join([*beside, *(reading.text(each) for each in messages[: own_words(messages)])])


def tools_of(body: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the tools a request offers."""
    names = [name for key in reading.TOOLS if body.get(key) for name in reading.tool_names(body[key])]
    return tuple(sorted(names))


def _alike(one: str, other: str) -> bool:
    """True for prompts that differ in numbers at most: clocks and counters are often in them."""
    return one == other or _DIGITS.sub("", one) == _DIGITS.sub("", other)


def endpoint_of(url: str | None) -> str:
    """Return what is called, without host, model and the question whether a stream is asked for."""
    try:
        path = unquote(urlsplit(url or "").path).rstrip("/")
    except ValueError:
        path = url or ""
    for streamed, plain in _SAME_PATHS:
        path = path.removesuffix(streamed) + plain if path.endswith(streamed) else path
    model = reading.model_of({}, path)
    path = path.replace(model, "*") if model else path
    return _DEPLOYMENT.sub("/deployments/*/", path)
