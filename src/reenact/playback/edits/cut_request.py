"""The request at the cut, to which edits refer: its conversation and its agent.

Later requests are compared with it: those of the same agent get the same settings, those that continue the
same conversation get the same changes.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ...errors import UsageError
from ...wire import reading
from ...wire.json_values import mapping, string
from ...wire.routes import plain_path
from ..matching.request import MODEL, element_part, tools_of
from ..matching.tape import RecordedCall, Tape

_MODEL_IN_URL = (("/models/", ":"), ("/model/", "/"), ("/deployments/", "/"))
"""The text before and after the model's name in a URL of Google, Amazon and Azure."""
_DIGITS = re.compile(r"\d+")
_SYSTEM_ROLES = ("system", "developer")


class Relation(NamedTuple):
    """How a request relates to the one at the cut."""

    is_agents: bool
    """It comes from the same agent: settings apply to it."""
    carries: bool
    """Its conversation begins with the whole conversation at the cut, apart from the system prompt."""
    is_cut: bool
    """It is the request at the cut, or a repetition of it."""
    shares: bool
    """It begins like the conversation at the cut and comes from the same agent."""


class CutRequest:
    """The request at the cut. Better built from a live request: the recording is redacted."""

    def __init__(self, body: Any, url: str | None, *, is_tools: bool = False) -> None:
        self.body: dict[str, Any] = mapping(body)
        self.url = url or ""
        self.is_tools = is_tools
        """The cut is at a tool that this request's answer called: no request carries its result yet."""
        self.provider = reading.provider_of_request(body, url)
        self.key, self.messages = conversation_of(self.body)

    @classmethod
    def at(cls, call: RecordedCall, tape: Tape) -> CutRequest:
        """Return the recorded request of a call; for a tool, the request with the answer that called it."""
        source = call if call.kind == MODEL else tape.model_call_of(call)
        if source is None:
            raise UsageError(
                f"no model call leads to {call.label()}, so there is no request to change",
                hint="cut at a model call",
            )
        request = source.request
        return cls(request.body, request.url, is_tools=source is not call)

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
    def kept_by_provider(self) -> str | None:
        """The id of the answer or conversation, stored by the provider, that this request continues."""
        return reading.kept_conversation(self.body)

    def relation(self, body: dict[str, Any], url: str) -> Relation:
        """Compare a request with this one."""
        if endpoint_of(url) != self.endpoint:
            return Relation(False, False, False, False)
        at_cut, now = without_system(self.messages), without_system(conversation_of(body)[1])
        common = common_start(at_cut, now)
        same_kept = reading.kept_conversation(body) == self.kept_by_provider
        shares = same_kept and common > 0
        alike = _alike(system_of(body), self.system)
        tools = tools_of(body) == self.tools
        # An agent without both is recognised by its model, or by the id of a stored conversation.
        is_recognised = bool(self.system or self.tools or reading.kept_conversation(body))
        is_recognised = is_recognised or reading.model_of(body, url) == reading.model_of(self.body, self.url)
        # One of the two may change from call to call; for an agent that took over the work, both do.
        is_agents = (alike and tools and is_recognised) or (
            shares and (alike or (tools and bool(self.tools)))
        )
        carries = shares and common == len(at_cut) and (is_agents or common >= 2)
        return Relation(is_agents, carries, carries and len(now) == common, shares and is_agents)


def conversation_of(body: dict[str, Any]) -> tuple[str | None, list[Any]]:
    """Return the key of the conversation in a request, and its messages; a bare text is one message."""
    key = reading.conversation_key(body)
    if key is not None:
        return key, body[key]
    if string(body.get("input")) and "messages" not in body:
        return "input", [{"role": "user", "content": body["input"]}]
    return None, []


def is_same(one: Any, other: Any) -> bool:
    """True if two messages have the same content; ids and cache marks do not count."""
    return bool(one == other) or digest(one) == digest(other)


def digest(message: Any) -> bytes:
    return element_part(message).normal


def common_start(one: list[Any], other: list[Any]) -> int:
    """Return the length of the common start of two conversations."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if not is_same(mine, theirs):
            break
        count += 1
    return count


def system_count(messages: list[Any]) -> int:
    """Return the number of system messages at the beginning."""
    count = 0
    while count < len(messages) and is_system(messages[count]):
        count += 1
    return count


def without_system(messages: list[Any]) -> list[Any]:
    """Return a conversation without its leading system messages."""
    return messages[system_count(messages) :]


def is_system(message: Any) -> bool:
    """True for a system message."""
    return mapping(message).get("role") in _SYSTEM_ROLES


def system_of(body: dict[str, Any]) -> str:
    """Return the system prompt as text, from its own key or from the messages."""
    beside = [reading.system_text(body[key]) for key in reading.SYSTEM if body.get(key)]
    _, messages = conversation_of(body)
    return "\n".join([*beside, *(reading.text(each) for each in messages[: system_count(messages)])])


def _alike(one: str, other: str) -> bool:
    """True for prompts that differ only in digits: many contain clocks and counters."""
    return one == other or _DIGITS.sub("", one) == _DIGITS.sub("", other)


def endpoint_of(url: str | None) -> str:
    """Return the path of the endpoint, without model and without whether it streams."""
    path = url or ""
    place = model_in(path)
    if place is not None:
        path = f"{path[: place[0]]}*{path[place[1] :]}"
    try:
        path = unquote(urlsplit(path).path).rstrip("/")
    except ValueError:  # not a URL
        pass
    return plain_path(path)


def model_in(url: str) -> tuple[int, int] | None:
    """Return the start and end of the model's name in a URL."""
    path = url.partition("?")[0]
    for before, after in _MODEL_IN_URL:
        start = path.rfind(before) + len(before)
        end = path.find(after, start) if start >= len(before) else -1
        if end > start:
            return start, end
    return None
