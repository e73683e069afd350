"""Gemini: POST …/models/{model}:generateContent.

The wire is camelCase; the snake_case that Google's own SDK gives out is understood as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import sse
from ..assembler import Assembler, Problems, fill, index_of, object_in
from ..json_values import mapping, mappings, parsed_arguments, plain_text, string, text_pieces
from ..neutral import (
    RESULT,
    TEXT,
    Cited,
    CommonPart,
    Conversation,
    Image,
    Losses,
    Other,
    Outcome,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    count,
    described,
    media_type_of,
    object_arguments,
    plus,
    text_of,
    token_usage,
    uncached,
)

NAME = "gemini"
ENDPOINTS: tuple[str, ...] = (":generateContent", ":streamGenerateContent")
SYSTEM_KEYS: tuple[str, ...] = ("systemInstruction", "system_instruction")
ID_KEYS: tuple[str, ...] = ("id",)
MESSAGES_KEY = "contents"
TOOLS_PATH: tuple[str, ...] = ("tools",)
USER_FIRST = True
ALTERNATES = False
JOINS_ROLES = True
ID_IN_RESULTS = False
REQUIRED_OPTIONS: tuple[str, ...] = ()
URL_OPTIONS: tuple[str, ...] = ("model", "stream")
OPTIONS = {"model": "model"}
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("generationConfig", {
    "maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "topK": "top_k",
    "stopSequences": "stop",
})  # fmt: skip
STOP = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
}
_SNAKE: dict[str, str] = {}
"""Names already turned into the SDK's spelling."""


def field(value: dict[str, Any], camel: str) -> Any:
    """Return a field in Google's spelling or in that of its SDK."""
    if camel in value:
        return value[camel]
    snake = _SNAKE.get(camel)
    if snake is None:
        snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in camel)
        _SNAKE[camel] = snake
    return value.get(snake)


def is_request(body: dict[str, Any]) -> bool:
    """True for contents."""
    return isinstance(body.get("contents"), list) and "messages" not in body


def is_response(body: dict[str, Any]) -> bool:
    """True for candidates or usage metadata, and for an error of Google's API."""
    if isinstance(body.get("candidates"), list):
        return True
    if isinstance(field(body, "usageMetadata"), dict) or isinstance(field(body, "promptFeedback"), dict):
        return True
    error = mapping(body.get("error"))
    return isinstance(error.get("status"), str) and "code" in error


def is_event(event: dict[str, Any]) -> bool:
    """True for a fragment of its stream."""
    return isinstance(event.get("candidates"), list) or "usageMetadata" in event or "promptFeedback" in event


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts."""
    return usage_from_raw(mapping(field(body, "usageMetadata")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """The prompt count includes the cached part; tool-use prompts and thoughts are counted apart.

    Google leaves out counts that are zero, so a missing output is what the total leaves for it.
    """
    prompt = count(field(raw, "promptTokenCount"))
    tool_prompt = count(field(raw, "toolUsePromptTokenCount"))
    read = count(field(raw, "cachedContentTokenCount"))
    thoughts = count(field(raw, "thoughtsTokenCount"))
    output = plus(count(field(raw, "candidatesTokenCount")), thoughts)
    total = count(field(raw, "totalTokenCount"))
    if output is None and total is not None and prompt is not None:
        output = max(0, total - prompt - (tool_prompt or 0))
    return token_usage(plus(uncached(prompt, read, None), tool_prompt), output, read, None, thoughts)


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason; STOP also ends an answer that calls tools."""
    for candidate in mappings(body.get("candidates")):
        reason = string(field(candidate, "finishReason"))
        if reason:
            found = STOP.get(reason, reason)
            return "tool_use" if found == "end_turn" and uses_tools else found
    return "content_filter" if field(mapping(field(body, "promptFeedback")), "blockReason") else None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (status, message) of an error body."""
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    code = count(error.get("code"))
    return string(error.get("status")) or (f"http_{code}" if code else None), plain_text(error.get("message"))


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the content of each candidate."""
    candidates = body.get("candidates")
    return [
        (f"/candidates/{index}/content", candidate["content"])
        for index, candidate in enumerate(candidates if isinstance(candidates, list) else [])
        if isinstance(candidate, dict) and isinstance(candidate.get("content"), dict)
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers as messages to be read."""
    return [content for _, content in answers(body)]


def citations(body: dict[str, Any]) -> list[Cited]:
    """Return what the first candidate is grounded in, and what it quotes; places are given in bytes."""
    candidate = next(iter(mappings(body.get("candidates"))), {})
    parts = mappings(mapping(candidate.get("content")).get("parts"))
    texts = ["" if _thought(each) else plain_text(each.get("text")) for each in parts]
    grounding = mapping(field(candidate, "groundingMetadata"))
    chunks = [_chunk(each) for each in mappings(field(grounding, "groundingChunks"))]
    found = []
    for support in mappings(field(grounding, "groundingSupports")):
        segment = mapping(support.get("segment"))
        begin, end = _place(texts, segment)
        numbers = field(support, "groundingChunkIndices")
        for number in numbers if isinstance(numbers, list) else ():
            if isinstance(number, int) and 0 <= number < len(chunks):
                found.append(Cited(begin, end, *chunks[number]))
    quoted = mapping(field(candidate, "citationMetadata"))
    for each in mappings(quoted.get("citations")) + mappings(field(quoted, "citationSources")):
        found.append(Cited(*_place(texts, each), string(each.get("uri")), string(each.get("title"))))
    return found


def _chunk(chunk: dict[str, Any]) -> tuple[str | None, str | None, str]:
    """Return the address, the title and the words of a source."""
    kinds = ("web", "retrievedContext", "maps", "image")
    known = next((found for kind in kinds if (found := mapping(field(chunk, kind)))), {})
    title = string(known.get("title"))
    address = (
        string(known.get("uri")) or string(field(known, "documentName")) or string(field(known, "sourceUri"))
    )
    return address or title, title, string(known.get("text")) or ""


def _place(texts: list[str], segment: dict[str, Any]) -> tuple[int, int]:
    """Return where a segment stands in the texts put together."""
    number = count(field(segment, "partIndex")) or 0
    before = sum(map(len, texts[:number]))
    text = texts[number] if number < len(texts) else ""
    words = string(segment.get("text"))
    data = text.encode("utf-8", "replace")
    begin, end = count(field(segment, "startIndex")) or 0, count(field(segment, "endIndex"))
    first = len(data[:begin].decode("utf-8", "ignore"))
    last = len(text) if end is None else len(data[:end].decode("utf-8", "ignore"))
    if words is not None and text[first:last] != words and words in text:  # what the text says counts
        first = text.index(words)
        last = first + len(words)
    return before + first, before + max(first, last)


def part(part: dict[str, Any]) -> Part | None:
    """Return what a part is; None if it is not one of Gemini's."""
    call, response = field(part, "functionCall"), field(part, "functionResponse")
    if isinstance(call, dict):
        args = call.get("args")
        decoded_args = {} if args is None else parsed_arguments(args)
        return ToolUse(string(call.get("id")), string(call.get("name")) or "", decoded_args)
    if isinstance(response, dict):
        value = response.get("response")
        failed = isinstance(value, dict) and value.get("error") is not None
        return ToolResult(string(response.get("id")), string(response.get("name")), value, failed)
    if "text" in part:
        text = plain_text(part["text"])
        is_thought = part.get("thought") is True
        return Reasoning(text, "a thinking block with its signature") if is_thought else Text(text)
    return _other_part(part)


def _other_part(part: dict[str, Any]) -> Part | None:
    code, result = field(part, "executableCode"), field(part, "codeExecutionResult")
    if isinstance(code, dict):
        return Other("a part of type executableCode", plain_text(code.get("code")), TEXT)
    if isinstance(result, dict):
        return Other("a part of type codeExecutionResult", plain_text(result.get("output")), RESULT)
    for name in ("inlineData", "fileData"):
        if field(part, name) is not None:
            data = mapping(field(part, name))
            media = string(field(data, "mimeType")) or ""
            if media.startswith("image/") and string(data.get("data")):
                return Image(media, str(data["data"]))
            return Other(f"a part of type {media or name}", f"[{name}]")
    return None


def result_value(response: dict[str, Any]) -> Any:
    """Return what a tool returned, by Google's convention under ``result``, ``output`` or ``error``."""
    if len(response) == 1:
        [(key, value)] = response.items()
        return value if key in ("result", "output", "error") else response
    return response


def result_messages(answered: list[tuple[ToolUse, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the one content that carries tool results."""
    return [{"role": "user", "parts": [_result_part(use, outcome) for use, outcome in answered]}]


def _result_part(use: ToolUse, outcome: Outcome) -> dict[str, Any]:
    is_object = isinstance(outcome.value, dict) and not outcome.failed
    value = outcome.value if is_object else {"error" if outcome.failed else "result": outcome.value}
    response = {"name": use.name, "response": value}
    return {"functionResponse": {"id": use.id, **response} if use.id else response}


def user_message(text: str) -> dict[str, Any]:
    """Return a content in which a user says this."""
    return {"role": "user", "parts": [{"text": text}]}


def system_value(old: Any, text: str) -> Any:
    """Return a system instruction that says this in the place of the old one."""
    return {**mapping(old), "parts": [{"text": text}]}


def with_result(part: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the part that is a result with another text, under the key that the old one is under."""
    key = "functionResponse" if "functionResponse" in part else "function_response"
    old, value = part[key], parsed_arguments(text) if text.strip() else text
    keys = ("result", "output", "content")
    wrapping = next((name for name in mapping(old.get("response")) if name in keys), "result")
    return {**part, key: {**old, "response": value if isinstance(value, dict) else {wrapping: text}}}


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    content = {"parts": [{"text": text}], "role": "model"}
    return {**old, "candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


# A stream put together.

_TEXT_KEYS = frozenset({"text", "thought", "thoughtSignature"})
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_LONGEST = 1000
"""Of a JSON path; a longer one is a trick."""


class StreamAssembler(Assembler):
    """Takes in the fragments of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}
        self._open: dict[int, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one fragment; True if the model adds content in it."""
        if "error" in event:
            self.fail(error_of(event), event)
            return False
        fill(self._usage, mapping(event.get("usageMetadata")))
        fill(self._body, event, "candidates", "usageMetadata")
        has_content = [
            self._candidate(piece, number) for number, piece in enumerate(mappings(event.get("candidates")))
        ]
        return any(has_content)

    def _candidate(self, piece: dict[str, Any], number: int) -> bool:
        index = index_of(piece.get("index"))
        index = number if index is None else index
        candidate = self._candidates.setdefault(index, {})
        fill(candidate, piece, "content")
        content = piece.get("content")
        if not isinstance(content, dict):
            return False  # blocked, or only the reason why it ended
        known = candidate.setdefault("content", {"parts": [], "role": "model"})
        fill(known, content, "parts")
        has_content = [self._part(index, known["parts"], part) for part in mappings(content.get("parts"))]
        return any(has_content)

    def _part(self, index: int, parts: list[dict[str, Any]], part: dict[str, Any]) -> bool:
        if isinstance(part.get("functionCall"), dict):
            self._call(index, parts, part)
            return True
        if "text" not in part or not _TEXT_KEYS.issuperset(part):
            parts.append(part)
            return True
        signed = "thoughtSignature" in part
        last = parts[-1] if parts else {}
        # A signature speaks for the text before it, so it ends a part.
        joins = "text" in last and "thoughtSignature" not in last and _TEXT_KEYS.issuperset(last)
        if joins and (_thought(last) == _thought(part) or (signed and not part["text"])):
            if signed:
                last["thoughtSignature"] = part["thoughtSignature"]
            return self.texts.add(last, "text", part["text"])
        if part["text"] or signed:
            parts.append(part)
        return bool(part["text"])

    def _call(self, index: int, parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
        """Take in a function call, or a piece of the one that is open: only the first has the name."""
        call = part["functionCall"]
        pieces = mappings(call.pop("partialArgs", None))
        continues = call.pop("willContinue", None) is True
        known = self._open.pop(index, None)
        if string(call.get("name")) or known is None:
            if not string(call.get("name")) and not call.get("args") and not pieces:
                return  # the end of a call that had ended
            parts.append(part)
            known = part
        else:
            fill(known, part, "functionCall")
            fill(known["functionCall"], call, "args")
            fill(object_in(known["functionCall"], "args"), mapping(call.get("args")))
        if pieces or continues:
            self._arguments(object_in(known["functionCall"], "args"), pieces)
        if continues:
            self._open[index] = known

    def _arguments(self, args: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            path = _path(piece.get("jsonPath"))
            kind = next((kind for kind in _VALUES if kind in piece), None)
            owner, key = _owner(args, path) if path else (None, None)
            if owner is None:
                self.problems.note(f"argument at a place that cannot be: {str(piece.get('jsonPath'))[:80]!r}")
            elif kind == "stringValue":
                self.texts.add(owner, key, piece[kind])
            elif kind is not None:
                owner[key] = None if kind == "nullValue" else piece[kind]

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        if not self._candidates and not self._body and not self._usage:
            return None
        self.texts.join()
        ended = [candidate.get("finishReason") for candidate in self._candidates.values()]
        blocked = mapping(self._body.get("promptFeedback")).get("blockReason")
        self.complete = bool(blocked) or (bool(ended) and all(ended))
        body = {"candidates": [self._candidates[index] for index in sorted(self._candidates)], **self._body}
        if self._usage:
            body["usageMetadata"] = self._usage
        return body


def _thought(part: dict[str, Any]) -> bool:
    return part.get("thought") is True


def _path(text: object) -> list[Any]:
    """Return the steps of ``$.a.b[0]['c d']``; empty if it is none."""
    rest = string(text) or ""
    if not rest.startswith("$") or len(rest) > _LONGEST:
        return []
    rest = rest[1:]
    steps: list[Any] = []
    while rest:
        if rest[0] == ".":
            end = min((at for at in (rest.find(".", 1), rest.find("[", 1)) if at > 0), default=len(rest))
            steps.append(rest[1:end])
            rest = rest[end:]
        elif rest[:2] in ("['", '["'):
            step, closed, rest = rest[2:].partition(rest[1] + "]")
            if not closed:
                return []
            steps.append(step)
        else:
            number, closed, rest = rest[1:].partition("]")
            if not closed or not number.isdecimal() or len(number) > 9:
                return []
            steps.append(int(number))
    return steps


def _owner(args: dict[str, Any], path: list[Any]) -> tuple[Any, Any]:
    """Return the object or list that holds the end of the path, made as far as it is missing."""
    owner: Any = args
    for step, after in zip(path, [*path[1:], None], strict=True):
        if isinstance(step, str) != isinstance(owner, dict) or not isinstance(owner, dict | list):
            return None, None
        if isinstance(owner, list):
            if not isinstance(step, int) or step > len(owner):
                return None, None  # lists grow one by one; no gap is filled
            if step == len(owner):
                owner.append(None)
        if after is None:
            break
        known = owner[step] if isinstance(owner, list) else owner.get(step)
        if known is None:
            known = owner[step] = {} if isinstance(after, str) else []
        owner = known
    return owner, path[-1]


# An answer as a stream again.

_BILL = "usageMetadata"


def stream_events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stream_events; the last has the bill."""
    envelope = {key: value for key, value in body.items() if key not in ("candidates", _BILL)}
    found = list(_candidates(body))
    for candidate in found[:-1]:
        yield {"candidates": [candidate], **envelope}
    bill = {_BILL: body[_BILL]} if _BILL in body else {}
    yield {"candidates": found[-1:], **envelope, **bill}


def _candidates(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number, candidate in enumerate(mappings(body.get("candidates"))):
        place = {"index": candidate.get("index", number)}
        ended = {key: value for key, value in candidate.items() if key not in ("content", "index")}
        content = candidate.get("content")
        if not isinstance(content, dict):  # blocked
            yield {**place, **ended}
            continue
        others = {key: value for key, value in content.items() if key != "parts"}
        all_pieces = [piece for part in mappings(content.get("parts")) for piece in _pieces(part)]
        for piece in all_pieces[:-1]:
            yield {"content": {"parts": [piece], **others}, **place}
        yield {"content": {"parts": all_pieces[-1:], **others}, **ended, **place}


def _pieces(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a text bit by bit, signed at its end; other values come whole."""
    pieces = text_pieces(part.get("text")) if "text" in part else []
    if not pieces or mapping(part.get("functionCall")):
        yield part
        return
    unsigned = {key: value for key, value in part.items() if key != "thoughtSignature"}
    for piece in pieces[:-1]:
        yield {**unsigned, "text": piece}
    yield {**part, "text": pieces[-1]}


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the pieces, one fragment each, of a stream that is this answer."""
    events = stream_events(body)
    if is_array_stream(url):
        return list(sse.written_as_array(events))
    return [sse.written(event) for event in events]


def is_array_stream(url: str | None) -> bool:
    """True if a URL asks for one JSON array instead of server-sent events."""
    path, _, query = (url or "").partition("?")
    return path.endswith(":streamGenerateContent") and "alt=sse" not in query


# Conversion from and to the neutral model.


def write_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """Return contents; there results are paired by name and order, so they stand in the uses' order."""
    contents = []
    order: list[str | None] = []
    for role, parts in conversation.messages:
        if role == "assistant":
            order = [part.id for part in parts if isinstance(part, ToolUse)]
        else:
            parts = _in_order(parts, order)
        found = [each for part in parts if (each := _written_part(part, conversation.lost)) is not None]
        if found:
            contents.append({"role": "model" if role == "assistant" else "user", "parts": found})
    return contents


def _in_order(parts: list[CommonPart], order: list[str | None]) -> list[CommonPart]:
    results = [part for part in parts if isinstance(part, ToolResult)]
    known = {id_: number for number, id_ in enumerate(order)}
    results.sort(key=lambda result: known.get(result.id, len(order)))
    return [*results, *(part for part in parts if not isinstance(part, ToolResult))]


def _written_part(part: CommonPart, lost: Losses) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"text": part.text} if part.text else None
    if isinstance(part, Image):
        if part.data is None:
            lost.add("an image at a URL")
            return None
        media = media_type_of(part)
        return {"inlineData": {"mimeType": media, "data": part.data}}
    lost.add("ids of tool uses and results, now paired by name and order")
    if isinstance(part, ToolUse):
        return {"functionCall": {"name": part.name, "args": object_arguments(part.args, lost)}}
    for each in part.parts:
        if isinstance(each, Image):
            lost.add("an image in a tool's result")
    text = text_of(part.parts)
    value = parsed_arguments(text)
    response = value if isinstance(value, dict) and text.strip() else {"result": text}
    if part.failed:
        response = {"error": text}
    return {"functionResponse": {"name": part.name or "", "response": response}}


def read_tool_choice(params: dict[str, Any]) -> str | None:
    """Return whether tools must be used: ``auto any none tool:NAME``."""
    config = mapping(field(mapping(field(params, "toolConfig")), "functionCallingConfig"))
    names = field(config, "allowedFunctionNames")
    if isinstance(names, list) and len(names) == 1:
        return f"tool:{names[0]}"
    mode = string(config.get("mode"))
    return mode.lower() if mode else None


def write_tool_choice(choice: str) -> dict[str, Any]:
    """Return the option for ``auto any none tool:NAME``."""
    kind, _, name = choice.partition(":")
    mode = {"mode": "ANY" if kind in ("any", "tool") else kind.upper()}
    config = {**mode, "allowedFunctionNames": [name]} if kind == "tool" else mode
    return {"toolConfig": {"functionCallingConfig": config}}


def write_system(text: str) -> dict[str, Any]:
    """Return the option that holds the system prompt."""
    return {"systemInstruction": {"parts": [{"text": text}]}}


def write_tools(tools: list[Tool]) -> list[dict[str, Any]]:
    """Return the declarations of tools."""
    functions = [described(tool, "parametersJsonSchema") for tool in tools]
    return [{"functionDeclarations": functions}] if functions else []
