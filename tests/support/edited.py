"""An agent's requests in every dialect, turn after turn, as edits get to see them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from reenact.playback.edits.cut_request import CutRequest
from reenact.playback.edits.edits import Edits
from reenact.wire.reading import conversation_key

SYSTEM = "You plan trips."


class Spelled(NamedTuple):
    """How one provider spells what an agent sends."""

    url: str
    rest: dict[str, Any]
    """All but the conversation, with the system prompt where it stands beside it."""
    before: list[Any]
    """The system prompt where it stands in the conversation."""
    user: Callable[[str], Any]
    use: Callable[[str, str], list[Any]]
    """The model's turn that asks for a tool: its id and argument."""
    result: Callable[[str, str], list[Any]]
    assistant: Callable[[str], list[Any]]
    key: str = "messages"


def _chat_use(id_: str, q: str) -> list[Any]:
    function = {"name": "search", "arguments": json.dumps({"q": q})}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id_, "type": "function", "function": function}],
        }
    ]


DIALECTS = {
    "anthropic": Spelled(
        "https://h/v1/messages",
        {"model": "claude-a", "max_tokens": 99, "system": SYSTEM, "temperature": 0.5,
         "tools": [{"name": "search", "description": "d", "input_schema": {"type": "object"}}]},
        [],
        lambda text: {"role": "user", "content": text},
        lambda id_, q: [{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": f"s-{id_}"},
            {"type": "tool_use", "id": id_, "name": "search", "input": {"q": q}}]}],
        lambda id_, text: [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id_, "content": text}]}],
        lambda text: [{"role": "assistant", "content": [{"type": "text", "text": text}]}],
    ),
    "openai": Spelled(
        "https://h/v1/chat/completions",
        {"model": "gpt-a", "temperature": 0.5,
         "tools": [{"type": "function", "function": {"name": "search", "description": "d"}}]},
        [{"role": "system", "content": SYSTEM}],
        lambda text: {"role": "user", "content": text},
        _chat_use,
        lambda id_, text: [{"role": "tool", "tool_call_id": id_, "content": text}],
        lambda text: [{"role": "assistant", "content": text}],
    ),
    "openai-responses": Spelled(
        "https://h/v1/responses",
        {"model": "gpt-a", "instructions": SYSTEM, "temperature": 0.5, "store": False,
         "tools": [{"type": "function", "name": "search", "description": "d", "parameters": {"type": "object"}}]},
        [],
        lambda text: {"role": "user", "content": text},
        lambda id_, q: [
            {"type": "reasoning", "id": f"rs_{id_}", "summary": [], "encrypted_content": f"sealed-{id_}"},
            {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": "search",
             "arguments": json.dumps({"q": q})}],
        lambda id_, text: [{"type": "function_call_output", "call_id": id_, "output": text}],
        lambda text: [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}],
        "input",
    ),
    "gemini": Spelled(
        "https://h/v1beta/models/gemini-a:generateContent?key=k",
        {"systemInstruction": {"parts": [{"text": SYSTEM}], "role": "user"},
         "generationConfig": {"temperature": 0.5},
         "tools": [{"functionDeclarations": [{"name": "search", "description": "d"}]}]},
        [],
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda id_, q: [{"role": "model", "parts": [
            {"functionCall": {"name": "search", "args": {"q": q}}, "thoughtSignature": f"s-{id_}"}]}],
        lambda id_, text: [{"role": "user", "parts": [
            {"functionResponse": {"name": "search", "response": {"result": text}}}]}],
        lambda text: [{"role": "model", "parts": [{"text": text}]}],
        "contents",
    ),
    "bedrock": Spelled(
        "https://h/model/anthropic.claude-a%3A0/converse",
        {"system": [{"text": SYSTEM}, {"cachePoint": {"type": "default"}}],
         "inferenceConfig": {"maxTokens": 99, "temperature": 0.5},
         "toolConfig": {"tools": [{"toolSpec": {"name": "search", "description": "d", "inputSchema": {"json": {}}}}]}},
        [],
        lambda text: {"role": "user", "content": [{"text": text}]},
        lambda id_, q: [{"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": f"s-{id_}"}}},
            {"toolUse": {"toolUseId": id_, "name": "search", "input": {"q": q}}}]}],
        lambda id_, text: [{"role": "user", "content": [
            {"toolResult": {"toolUseId": id_, "content": [{"text": text}], "status": "success"}}]}],
        lambda text: [{"role": "assistant", "content": [{"text": text}]}],
    ),
    "ollama": Spelled(
        "https://h/api/chat",
        {"model": "llama-a", "stream": False, "options": {"temperature": 0.5},
         "tools": [{"type": "function", "function": {"name": "search", "description": "d"}}]},
        [{"role": "system", "content": SYSTEM}],
        lambda text: {"role": "user", "content": text},
        lambda id_, q: [{"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "search", "arguments": {"q": q}}}]}],
        lambda id_, text: [{"role": "tool", "tool_name": "search", "content": text}],
        lambda text: [{"role": "assistant", "content": text}],
    ),
}  # fmt: skip


def request(name: str, turns: int, *, question: str = "Plan Lisbon", ids: str = "call") -> dict[str, Any]:
    """The request an agent makes after so many tools; ``ids`` begin as a server of the day makes them."""
    spelled = DIALECTS[name]
    conversation = [*spelled.before, spelled.user(question)]
    for turn in range(turns):
        id_ = f"{ids}_{turn}"
        conversation += spelled.use(id_, f"hotel {turn}") + spelled.result(id_, f"found {turn}")
    return copy.deepcopy({**spelled.rest, spelled.key: conversation})


def another(name: str) -> dict[str, Any]:
    """A request of another agent to the same provider."""
    text = json.dumps(request(name, 1, question="Which wine?"))
    return json.loads(text.replace(SYSTEM, "You know wines.").replace("search", "cellar"))


def at_cut(name: str, turns: int = 2) -> CutRequest:
    return CutRequest(request(name, turns), DIALECTS[name].url)


def conversation(body: dict[str, Any]) -> list[Any]:
    key = conversation_key(body)
    assert key is not None
    return body[key]


def edited(edits: Edits, body: dict[str, Any], cut: CutRequest, url: str | None = None) -> dict[str, Any]:
    """The edited body; the given one is never touched, and edits survive being told as JSON."""
    before = copy.deepcopy(body)
    edits = Edits.from_json(json.loads(json.dumps(edits.as_json())))
    found = edits.request(body, url or cut.url, cut)
    assert body == before
    again = edits.request(found.body, found.url, cut)
    assert (again.body, again.url) == (found.body, found.url), "an edit is made once"
    return found.body
