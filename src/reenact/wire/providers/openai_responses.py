"""OpenAI Responses: POST /v1/responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import sse
from ..assembler import Assembler, Problems, Texts, fill, grow, index_of, object_in
from ..json_values import (
    as_text,
    call_text,
    mapping,
    mappings,
    parsed_arguments,
    plain_text,
    string,
    text_pieces,
)
from ..neutral import (
    RESULT,
    TOOL,
    Cited,
    Other,
    Outcome,
    Part,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    count,
    first_count,
    image_at,
    token_usage,
    uncached,
)
from . import openai_chat

NAME = "openai-responses"
ENDPOINTS: tuple[str, ...] = ("/responses", "/realtime")
SYSTEM_KEYS: tuple[str, ...] = ("instructions",)
ID_KEYS: tuple[str, ...] = ("id", "call_id", "item_id")
MESSAGES_KEY = "input"
TOOLS_PATH: tuple[str, ...] = ("tools",)
USER_FIRST = False
ALTERNATES = False
JOINS_ROLES = False
OPTIONS = {
    "model": "model", "max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p",
    "stream": "stream",
}  # fmt: skip
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("", {})
STOP = {"max_output_tokens": "max_tokens", "failed": "error"}
_OWN_ARGUMENTS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "computer_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
}
"""Calls without a name: where each keeps its arguments. The name is the type without ``_call``."""


def is_request(body: dict[str, Any]) -> bool:
    """True for an input without messages; an embedding request, which looks the same, is not one."""
    if "messages" in body or not isinstance(body.get("input"), str | list):
        return "previous_response_id" in body and "messages" not in body
    return "encoding_format" not in body and "embed" not in (string(body.get("model")) or "")


def is_response(body: dict[str, Any]) -> bool:
    """True for a response object."""
    if body.get("object") == "response":
        return True
    return isinstance(body.get("output"), list) and ("status" in body or "usage" in body)


def is_event(event: dict[str, Any]) -> bool:
    """True for an event of its stream."""
    return (string(event.get("type")) or "").startswith("response.")


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``input_tokens`` includes what the cache gave or took, ``output_tokens`` includes reasoning."""
    details, output = mapping(raw.get("input_tokens_details")), mapping(raw.get("output_tokens_details"))
    # The names at the top level are those of Codex's session files.
    read = first_count(details.get("cached_tokens"), raw.get("cached_input_tokens"))
    write = first_count(details.get("cache_write_tokens"), raw.get("cache_write_input_tokens"))
    return token_usage(
        uncached(count(raw.get("input_tokens")), read, write),
        count(raw.get("output_tokens")),
        read,
        write,
        first_count(output.get("reasoning_tokens"), raw.get("reasoning_output_tokens")),
    )


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason; ``completed`` says nothing of why, so the output decides."""
    status = string(body.get("status"))
    if status == "incomplete":
        reason = string(mapping(body.get("incomplete_details")).get("reason"))
        return STOP.get(reason, reason) if reason else status
    if status != "completed":
        return STOP.get(status, status) if status else None
    if uses_tools:
        return "tool_use"
    items = mappings(body.get("output"))
    if any(item.get("type") == "mcp_approval_request" for item in items):
        return "pause"
    kinds = [part.get("type") for item in items for part in mappings(item.get("content"))]
    return "refusal" if "refusal" in kinds else "end_turn"


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message) of a response that failed."""
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    return string(error.get("type")) or string(error.get("code")), plain_text(error.get("message"))


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every output item; the agent appends all of them."""
    output = body.get("output")
    return [
        (f"/output/{index}", item)
        for index, item in enumerate(output if isinstance(output, list) else [])
        if isinstance(item, dict)
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the output items to be read."""
    return mappings(body.get("output"))


def citations(body: dict[str, Any]) -> list[Cited]:
    """Return the annotations of the output texts."""
    found, at = [], 0
    for item in messages(body):
        for content in mappings(item.get("content")) if item.get("type") == "message" else ():
            if content.get("type") == "output_text":
                found += [openai_chat.annotation(each, at) for each in mappings(content.get("annotations"))]
                at += len(plain_text(content.get("text")))
    return [each for each in found if each is not None]


def part(part: dict[str, Any]) -> Part | None:
    """Return what an item or a content part is; None if it is not one of Responses'."""
    kind = string(part.get("type")) or ""
    if kind in ("input_text", "output_text"):
        return Text(plain_text(part.get("text")))
    if kind == "input_image":
        return image_at(string(part.get("image_url")))
    if kind in ("reasoning_text", "summary_text"):
        return Reasoning(plain_text(part.get("text")))
    if kind == "reasoning":
        return Reasoning(plain_text(part.get("summary")) or plain_text(part.get("content")))
    if kind.endswith("_output"):
        return _output(part, kind)
    if kind in ("mcp_call", "mcp_approval_request"):
        return Other(f"an item of type {kind}", call_text(part.get("name"), part.get("arguments")), TOOL)
    id_ = string(part.get("call_id"))
    if kind == "function_call":
        return ToolUse(id_, string(part.get("name")) or "", parsed_arguments(part.get("arguments")), kind)
    if kind == "custom_tool_call":
        return ToolUse(id_, string(part.get("name")) or "", part.get("input"), kind)  # free text, not JSON
    if kind in _OWN_ARGUMENTS and part.get("execution") != "server":
        return ToolUse(id_, kind.removesuffix("_call"), part.get(_OWN_ARGUMENTS[kind]), kind)
    return Other(f"an item of type {kind}", plain_text(part)) if kind.endswith("_call") else None


def _output(item: dict[str, Any], kind: str) -> Part:
    if item.get("execution") == "server":
        return Other(f"an item of type {kind}", plain_text(item.get("output")), RESULT)
    failed = item.get("status") in ("failed", "incomplete")
    return ToolResult(string(item.get("call_id")), None, item.get("output"), failed, kind)


_OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""Calls whose output is a text, so that it can be made from a result."""


def result_messages(answered: list[tuple[ToolUse, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the items that carry tool results; None if one has no shape made of a text."""
    if any(use.form not in _OUTPUTS for use, _ in answered):
        return None
    return [
        {"type": _OUTPUTS[use.form or ""], "call_id": use.id, "output": as_text(outcome.value)}
        for use, outcome in answered
    ]


def with_result(item: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the item that is a result with another text, no longer an error."""
    kept = {key: value for key, value in item.items() if key != "status"}
    status = {"status": "completed"} if "status" in item else {}
    is_list = isinstance(item.get("output"), list)
    return {**kept, "output": [{"type": "input_text", "text": text}] if is_list else text, **status}


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    ids = [item.get("id") for item in mappings(old.get("output")) if item.get("type") == "message"]
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    item = {"id": next(filter(string, ids), "msg_reenact"), "type": "message", "role": "assistant"}
    head = {
        "id": "resp_reenact", "object": "response", "created_at": 0, "model": model,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    ended = {"status": "completed", "error": None, "incomplete_details": None}
    return {**head, **old, **ended, "output": [{**item, "status": "completed", "content": content}]}


# A stream put together.

_LAST_EVENTS = (
    "response.completed", "response.incomplete", "response.failed", "response.cancelled",
    "response.done",  # a realtime session's
)  # fmt: skip
_FIRST_EVENTS = ("response.created", "response.queued", "response.in_progress")
_IN_PARTS = {
    "output_text": ("content", "output_text", "text"),
    "refusal": ("content", "refusal", "refusal"),
    "reasoning_text": ("content", "reasoning_text", "text"),
    "reasoning_summary_text": ("summary", "summary_text", "text"),
}
"""Text that belongs to a part of an item: the list of parts, the part's type, its field."""
_IN_ITEM = {
    "function_call_arguments": ("function_call", "arguments"),
    "mcp_call_arguments": ("mcp_call", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "input"),
    "code_interpreter_call_code": ("code_interpreter_call", "code"),
}
"""Text that belongs to an item itself: the item's type, its field."""


class StreamAssembler(Assembler):
    """Takes in the events of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._begin(None)

    def _begin(self, response: dict[str, Any] | None) -> None:
        self._response = response
        self._final: dict[str, Any] | None = None
        self._items: dict[int, dict[str, Any]] = {}
        self._finished: set[int] = set()
        self._by_id: dict[str, int] = {}
        self._parts: dict[int, dict[tuple[str, int], dict[str, Any]]] = {}
        self._last = -1
        self.texts = Texts()

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model adds content in it."""
        kind = string(event.get("type")) or ""
        if kind in _FIRST_EVENTS:
            self._respond(kind, mapping(event.get("response")))
            return False
        if kind in _LAST_EVENTS:
            self._final = mapping(event.get("response"))
            self.complete = True
            self.fail(error_of(self._final), event)
            return False
        if kind == "error" or (not kind and "error" in event):
            flat = string(event.get("code")), plain_text(event.get("message"))
            self.fail(error_of(event) or flat, event)
            return False
        return self._progress(kind.removeprefix("response."), event)

    def _respond(self, kind: str, response: dict[str, Any]) -> None:
        if kind == "response.created" and self._items:  # started anew, as gateways do
            self.aborted.append(self.body() or {})
            self.complete = False
            self._begin(None)
        self._response = response or self._response

    def _progress(self, kind: str, event: dict[str, Any]) -> bool:
        name, _, verb = kind.rpartition(".")
        if name == "output_item":
            return self._item(verb, event)
        if kind == "output_text.annotation.added":
            grow(self._part(event, "content", "output_text"), "annotations", [event.get("annotation")])
            return False
        if name in ("content_part", "reasoning_summary_part"):
            kept = "content" if name == "content_part" else "summary"
            new = mapping(event.get("part"))
            part = self._part(event, kept, string(new.get("type")) or "output_text")
            fill(part, new, "text", "refusal")
            for field in ("text", "refusal"):
                if string(new.get(field)):
                    self.texts.put(part, field, new[field])
            return False
        owner, field = self._place(name, event)
        if owner is None or verb not in ("delta", "done"):
            return False
        if verb == "delta":
            return self.texts.add(owner, field, event.get("delta"))
        self.texts.put(owner, field, event.get(field if isinstance(field, str) else "command"))
        return False

    def _place(self, name: str, event: dict[str, Any]) -> tuple[Any, Any]:
        """Return the object or list, and the key in it, to which a piece of text belongs."""
        if name in _IN_PARTS:
            kept, type, field = _IN_PARTS[name]
            return self._part(event, kept, type), field
        if name in _IN_ITEM:
            type, field = _IN_ITEM[name]
            return self._of(event, type)[1], field
        if name == "apply_patch_call_operation_diff":
            return object_in(self._of(event, "apply_patch_call")[1], "operation"), "diff"
        if name == "shell_call_command":
            action = object_in(self._of(event, "shell_call")[1], "action")
            commands = action.get("commands")
            if not isinstance(commands, list):
                commands = action["commands"] = []
            index = index_of(event.get("command_index"))
            if index is None or index >= len(commands):
                index = len(commands)
                commands.append("")
            return commands, index
        return None, None

    def _item(self, verb: str, event: dict[str, Any]) -> bool:
        item = mapping(event.get("item"))
        index = self._index(event, string(item.get("id")))
        if index is None:
            index = self._last + 1
        self._last = max(self._last, index)
        self._items[index] = item
        self._parts.pop(index, None)
        if string(item.get("id")):
            self._by_id[item["id"]] = index
        if verb == "done":
            self._finished.add(index)
        content = item.get("content") or item.get("summary")
        return item.get("type") not in ("message", "reasoning") or bool(content)

    def _index(self, event: dict[str, Any], id: str | None) -> int | None:
        index = index_of(event.get("output_index"))
        return self._by_id.get(id or "") if index is None else index

    def _of(self, event: dict[str, Any], type: str) -> tuple[int, dict[str, Any]]:
        """Return the item an event speaks of; a finished one is not changed any more."""
        index = self._index(event, string(event.get("item_id")))
        if index is None:
            index = max(self._last, 0)
        if index in self._finished:
            return index, {}
        item = self._items.get(index)
        if item is None:
            self.problems.note(f"{event.get('type')} for item {index}, which never began")
            item = self._items[index] = {"type": type, "id": event.get("item_id")}
            self._last = max(self._last, index)
            if type == "message":
                item["role"] = "assistant"
        return index, item

    def _part(self, event: dict[str, Any], kept: str, type: str) -> dict[str, Any]:
        owner = "reasoning" if kept == "summary" or type == "reasoning_text" else "message"
        index, item = self._of(event, owner)
        number = index_of(event.get("summary_index" if kept == "summary" else "content_index")) or 0
        known = self._parts.setdefault(index, {})
        part = known.get((kept, number))
        if part is None:
            part = {"type": type, "refusal" if type == "refusal" else "text": ""}
            if type == "output_text":
                part["annotations"] = []
            grow(item, kept, [part])
            known[kept, number] = part
        return part

    def body(self) -> dict[str, Any] | None:
        """Return the response; one that broke off keeps the status it had."""
        self.texts.join()
        output = [self._items[index] for index in sorted(self._items)]
        if self._final:
            if output and not self._final.get("output"):
                self._final["output"] = output  # left out by gateways that sent it before
            return self._final
        if self._response is None and not output:
            return None
        head = self._response or {}
        return {"object": "response", "status": "in_progress", **head, "output": output}


# An answer as a stream again.

_ENDED = ("completed", "incomplete", "failed", "cancelled")
_TEXT_PARTS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
    "summary_text": ("response.reasoning_summary_text", "text"),
}
"""Parts of an item that come in pieces: the events' name, and the field."""
_TEXT_ITEMS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
_ADDED = {
    "content": ("content_index", "response.content_part"),
    "summary": ("summary_index", "response.reasoning_summary_part"),
}


def stream_events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stream_events, each with type and number."""
    for number, event in enumerate(_events(body)):
        yield {"type": event["type"], "sequence_number": number, **event}


def _events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    not_yet = {"usage": None, "incomplete_details": None, "error": None}
    head = {**body, "status": "in_progress", "output": [], **not_yet}
    yield {"type": "response.created", "response": head}
    yield {"type": "response.in_progress", "response": head}
    for index, item in enumerate(mappings(body.get("output"))):
        at = {"item_id": item.get("id"), "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _started(item)}
        for event in _within(item):
            yield {"type": event["type"], **at, **event}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = string(body.get("status"))
    yield {"type": f"response.{status if status in _ENDED else 'completed'}", "response": body}


def _started(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is before it has content."""
    started = dict(item)
    kind = string(item.get("type")) or ""
    if "status" in item:
        started["status"] = "in_progress"
    if kind in _TEXT_ITEMS:
        started[_TEXT_ITEMS[kind][1]] = ""
    if kind in ("message", "reasoning"):
        started |= {key: [] for key in _ADDED if type(item.get(key)) is list}
    return started


def _within(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = string(item.get("type")) or ""
    if kind in _TEXT_ITEMS:
        name, field = _TEXT_ITEMS[kind]
        yield from _text(name, field, item.get(field), {"name": item["name"]} if "name" in item else {})
    if kind in ("message", "reasoning"):
        for key, (index_name, added) in _ADDED.items():
            for number, part in enumerate(mappings(item.get(key))):
                for event in _part(part, added):
                    yield {"type": event["type"], index_name: number, **event}


def _part(part: dict[str, Any], added: str) -> Iterator[dict[str, Any]]:
    name, field = _TEXT_PARTS.get(string(part.get("type")) or "", ("", ""))
    noted = mappings(part.get("annotations"))
    empty = {**part, field: "", **({"annotations": []} if noted else {})} if name else part
    yield {"type": f"{added}.added", "part": empty}
    if name:
        extra: dict[str, Any] = {"logprobs": []} if name == "response.output_text" else {}
        yield from _text(name, field, part.get(field), extra, extra)
    for number, each in enumerate(noted):
        kind = "response.output_text.annotation.added"
        yield {"type": kind, "annotation_index": number, "annotation": each}
    yield {"type": f"{added}.done", "part": part}


def _text(
    name: str, field: str, text: object, at_end: dict[str, Any], with_each: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    for piece in text_pieces(text):
        yield {"type": f"{name}.delta", "delta": piece, **(with_each or {})}
    yield {"type": f"{name}.done", field: text, **at_end}


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the pieces, one event each, of a stream that is this answer."""
    return [sse.written_with_name(event) for event in stream_events(body)]


# Conversion from and to the neutral model.


# The same as in Chat Completions.
read_tool_choice = openai_chat.read_tool_choice
user_message = openai_chat.user_message
system_value = openai_chat.system_value
