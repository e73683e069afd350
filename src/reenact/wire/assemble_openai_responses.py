"""A streamed answer of OpenAI Responses put together: typed events, then the response as a whole.

One of the assemblers behind stream.py. The last event carries everything; without it the finished
items do, and of unfinished ones the deltas. Items go by ``output_index``: gateways change their ids.
"""

from __future__ import annotations

from . import openai_responses
from .pieces import Assembler, Texts, fill, grow, index_of, inner
from .values import mapping, string, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems

_TERMINAL = (
    "response.completed", "response.incomplete", "response.failed", "response.cancelled",
    "response.done",  # a realtime session's
)  # fmt: skip
_BEGINNING = ("response.created", "response.queued", "response.in_progress")

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


class Responses(Assembler):
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
        """Take in one event; True if the model said something in it."""
        kind = string(event.get("type")) or ""
        if kind in _BEGINNING:
            self._respond(kind, mapping(event.get("response")))
            return False
        if kind in _TERMINAL:
            self._final = mapping(event.get("response"))
            self.complete = True
            self.fail(openai_responses.error_of(self._final), event)
            return False
        if kind == "error" or (not kind and "error" in event):
            flat = string(event.get("code")), words(event.get("message"))
            self.fail(openai_responses.error_of(event) or flat, event)
            return False
        return self._progress(kind.removeprefix("response."), event)

    def _respond(self, kind: str, response: dict[str, Any]) -> None:
        if kind == "response.created" and self._items:  # begun anew, as gateways do
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
            return inner(self._of(event, "apply_patch_call")[1], "operation"), "diff"
        if name == "shell_call_command":
            action = inner(self._of(event, "shell_call")[1], "action")
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
        said = item.get("content") or item.get("summary")
        return item.get("type") not in ("message", "reasoning") or bool(said)

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
                self._final["output"] = output  # left out by gateways that think it was said before
            return self._final
        if self._response is None and not output:
            return None
        begun = self._response or {}
        return {"object": "response", "status": "in_progress", **begun, "output": output}
