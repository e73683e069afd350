"""OpenAI Chat Completions, POST /v1/chat/completions, and the many servers that speak it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import sse
from ..assembler import Assembler, Problems, Texts, fill, index_of
from ..claims import markers
from ..json_values import (
    as_json,
    as_text,
    mapping,
    mappings,
    parsed_arguments,
    plain_text,
    some_messages,
    string,
    text_pieces,
)
from ..neutral import (
    Cited,
    CommonPart,
    Conversation,
    Image,
    Losses,
    Outcome,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    count,
    described,
    first_count,
    image_at,
    media_type_of,
    named_choice,
    text_blocks,
    text_of,
    token_usage,
    uncached,
)

NAME = "openai"
ENDPOINTS: tuple[str, ...] = ("/chat/completions", "/completions")
SYSTEM_KEYS: tuple[str, ...] = ()
ID_KEYS: tuple[str, ...] = ("id", "tool_call_id")
MESSAGES_KEY = "messages"
TOOLS_PATH: tuple[str, ...] = ("tools",)
USER_FIRST = False
ALTERNATES = False
JOINS_ROLES = False
ID_IN_RESULTS = True
REQUIRED_OPTIONS: tuple[str, ...] = ()
URL_OPTIONS: tuple[str, ...] = ()
OPTIONS = {
    "model": "model", "max_completion_tokens": "max_tokens", "max_tokens": "max_tokens",
    "temperature": "temperature", "top_p": "top_p", "stop": "stop", "stream": "stream",
}  # fmt: skip
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("", {})
STOP = {
    "stop": "end_turn",
    "eos": "end_turn",
    "eos_token": "end_turn",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
_ROLES = frozenset({"system", "developer", "tool", "function"})
_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_PARAMETERS = frozenset({
    "frequency_penalty", "functions", "function_call", "logit_bias", "logprobs", "max_completion_tokens",
    "modalities", "n", "parallel_tool_calls", "presence_penalty", "reasoning_effort", "response_format",
    "seed", "stop", "stream_options", "top_logprobs", "web_search_options",
})  # fmt: skip


def is_request(body: dict[str, Any]) -> bool:
    """True for roles, parts, tools or parameters that the other ``messages`` shapes do not have."""
    if any("function" in tool or tool.get("type") == "function" for tool in mappings(body.get("tools"))):
        return True
    for message in some_messages(body):
        if string(message.get("role")) in _ROLES or "tool_calls" in message or "function_call" in message:
            return True
        if any(string(part.get("type")) in _PARTS for part in mappings(message.get("content"))):
            return True
    return "messages" in body and not _PARAMETERS.isdisjoint(body)


def is_response(body: dict[str, Any]) -> bool:
    """True for choices, and for an error with OpenAI's fields."""
    if isinstance(body.get("choices"), list):
        return True
    if body.get("object") == "error":
        return True
    error = body.get("error")
    if not isinstance(error, dict) or body.get("type") == "error" or "status" in error:
        return False
    return "message" in error and ("type" in error or "code" in error)


def is_event(event: dict[str, Any]) -> bool:
    """True for a chunk of its stream."""
    return isinstance(event.get("choices"), list)


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts; Groq keeps them under ``x_groq`` at times."""
    raw = mapping(body.get("usage")) or mapping(mapping(body.get("x_groq")).get("usage"))
    return usage_from_raw(raw)


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``prompt_tokens`` includes what the cache gave or took, so both are taken off.

    ``completion_tokens`` includes reasoning, except where the total shows that it does not (xAI, and
    Gemini behind this shape).
    """
    prompt, completion = count(raw.get("prompt_tokens")), count(raw.get("completion_tokens"))
    details = mapping(raw.get("prompt_tokens_details"))
    read = first_count(
        details.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),  # DeepSeek
        raw.get("cache_read_input_tokens"),  # LiteLLM
        raw.get("cached_tokens"),  # Moonshot
    )
    write = first_count(
        details.get("cache_write_tokens"),
        details.get("cache_creation_tokens"),  # LiteLLM
        raw.get("cache_creation_input_tokens"),
    )
    reasoning = count(mapping(raw.get("completion_tokens_details")).get("reasoning_tokens"))
    total = count(raw.get("total_tokens"))
    if completion is not None and prompt is not None and total is not None:
        completion = max(completion, total - prompt)
    if completion is not None and reasoning is not None and reasoning > completion:
        completion += reasoning
    return token_usage(uncached(prompt, read, write), completion, read, write, reasoning)


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason of the first choice that has one.

    ``stop`` is also what a forced tool call ends with, so the message decides what it was.
    """
    for choice in mappings(body.get("choices")):
        reason = string(choice.get("finish_reason"))
        if reason is None:
            continue
        found = STOP.get(reason, reason)
        if found == "end_turn":
            message = mapping(choice.get("message"))
            if uses_tools:
                return "tool_use"
            if string(message.get("refusal")):
                return "refusal"
            if string(choice.get("stop_reason")):  # vLLM names the stop string
                return "stop_sequence"
        return found
    return None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message) of an error body, or of a choice that ended in an error (OpenRouter)."""
    if body.get("object") == "error":
        return string(body.get("type")), plain_text(body.get("message"))
    found = [body.get("error"), *(choice.get("error") for choice in mappings(body.get("choices")))]
    for error in found:
        if isinstance(error, dict):
            return _error_type(error), plain_text(error.get("message"))
        if string(error):
            return None, str(error)
    return None


def _error_type(error: dict[str, Any]) -> str | None:
    code = error.get("code")
    number = count(code)
    return string(error.get("type")) or string(code) or (f"http_{number}" if number else None)


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the message of each choice; the agent appends the one it picked."""
    choices = body.get("choices")
    return [
        (f"/choices/{index}/message", choice["message"])
        for index, choice in enumerate(choices if isinstance(choices, list) else [])
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict)
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers as messages to be read; old completions have bare text."""
    return [
        mapping(choice.get("message")) or {"content": choice.get("text")}
        for choice in mappings(body.get("choices"))
    ]


def citations(body: dict[str, Any]) -> list[Cited]:
    """Return the annotations of the first choice; Perplexity lists the addresses that ``[1]`` names."""
    message = next(iter(messages(body)), {})
    found = [annotation(each, 0) for each in mappings(message.get("annotations"))]
    urls = body.get("citations")
    if isinstance(urls, list) and not found:
        content = plain_text(message.get("content"))
        by_id = {str(number): url for number, url in enumerate(urls, 1) if isinstance(url, str)}
        named = [marker for marker in markers(content, by_id) if marker.id in by_id]
        found = [Cited(marker.begin, marker.end, by_id[marker.id]) for marker in named]
    return [each for each in found if each is not None]


def annotation(item: dict[str, Any], at: int) -> Cited | None:
    """Return what an annotation of a text cites; ``at`` is where that text begins. Also of Responses."""
    kind = string(item.get("type")) or ""
    cited = mapping(item.get(kind)) or item
    if kind not in ("url_citation", "file_citation", "container_file_citation"):
        return None
    begin = count(cited.get("start_index"))
    begin = count(cited.get("index")) if begin is None else begin
    end = count(cited.get("end_index"))
    source = string(cited.get("url")) or string(cited.get("file_id"))
    title = string(cited.get("title")) or string(cited.get("filename"))
    if begin is None or not (source or title):
        return None
    quote = string(cited.get("quote")) or ""
    return Cited(at + begin, at + max(begin, begin if end is None else end), source or title, title, quote)


_REASONING = ("reasoning_content", "reasoning", "thinking")  # thinking: Ollama
_BESIDE_CONTENT = {*_REASONING, "reasoning_details", "refusal", "images", "tool_calls", "function_call"}


def message_parts(message: dict[str, Any], content: Iterator[Part]) -> Iterator[Part]:
    """Yield what a message consists of, around the parts of its content.

    Mistral's, Cohere's and Ollama's messages are spelled the same way.
    """
    if message.get("role") in ("tool", "function"):
        name = string(message.get("tool_name", message.get("name")))
        failed = message.get("is_error") is True or message.get("status") == "error"
        yield ToolResult(string(message.get("tool_call_id")), name, message.get("content"), failed)
        return
    if _BESIDE_CONTENT.isdisjoint(message):
        yield from content
        return
    if any(message.get(key) for key in (*_REASONING, "reasoning_details")):
        yield Reasoning(next(filter(None, (plain_text(message.get(key)) for key in _REASONING)), ""))
    yield from content
    if message.get("refusal"):
        yield Text(plain_text(message["refusal"]))
    images = message.get("images")
    for data in images if isinstance(images, list) else ():
        if isinstance(data, str):  # Ollama: base64 without a type
            yield Image(None, data)
    for call in mappings(message.get("tool_calls")):
        yield _tool_use(call)
    old = message.get("function_call")
    if isinstance(old, dict):
        yield ToolUse(None, string(old.get("name")) or "", parsed_arguments(old.get("arguments")), "function")


def _tool_use(call: dict[str, Any]) -> ToolUse:
    custom = call.get("custom")
    if isinstance(custom, dict):
        name, args = custom.get("name"), custom.get("input")  # free text, not JSON
    else:
        function = mapping(call.get("function"))
        name, args = function.get("name"), parsed_arguments(function.get("arguments"))
    return ToolUse(string(call.get("id")), string(name) or "", args)


def part(part: dict[str, Any]) -> Part | None:
    """Return what a content part is; None if it is not one of Chat Completions'."""
    kind = string(part.get("type")) or ""
    if kind == "text":
        return Text(plain_text(part.get("text")))
    if kind == "refusal":
        return Text(plain_text(part.get("refusal")))
    if kind == "image_url":
        url = part.get("image_url")
        return image_at(string(mapping(url).get("url")) or string(url))
    return None


def result_messages(answered: list[tuple[ToolUse, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the messages that carry tool results, one each."""
    return [_result_message(use, outcome) for use, outcome in answered]


def _result_message(use: ToolUse, outcome: Outcome) -> dict[str, Any]:
    if use.id is None:
        return {"role": "function", "name": use.name, "content": as_text(outcome.value)}
    return {"role": "tool", "tool_call_id": use.id, "content": as_text(outcome.value)}


def user_message(text: str) -> dict[str, Any]:
    """Return a message in which a user says this."""
    return {"role": "user", "content": text}


def system_value(old: Any, text: str) -> Any:
    """Return a system prompt that says this in the place of the old one."""
    return text_blocks(old, text) if isinstance(old, list) else text


def with_result(message: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the message that is a result with another text."""
    old = message.get("content")
    return {**message, "content": [{"type": "text", "text": text}] if isinstance(old, list) else text}


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "chatcmpl-reenact", "object": "chat.completion", "created": 0, "model": model}
    return {**head, **old, "choices": [choice]}


# A stream put together.

_BODIES = (("function", "arguments"), ("custom", "input"))


class ToolCalls:
    """The calls of one message, in a list that is filled in place."""

    def __init__(self, calls: list[dict[str, Any]], texts: Texts) -> None:
        self._calls = calls
        self._texts = texts
        self._by_index: dict[int, dict[str, Any]] = {}
        self._by_id: dict[str, dict[str, Any]] = {}

    def add(self, pieces: list[dict[str, Any]]) -> None:
        """Take in the pieces of one delta."""
        for piece in pieces:
            index, id = index_of(piece.get("index")), string(piece.get("id"))
            call = self._known(index, id)
            if call is None or not self._same(call, piece, id):
                call = {"id": None, "type": "function"}
                self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
            if id is not None:
                self._by_id[id] = call
            fill(call, piece, "index", "function", "custom")
            for key, text in _BODIES:
                if isinstance(piece.get(key), dict):
                    self._take(call.setdefault(key, {"name": "", text: ""}), piece[key], text)

    def _known(self, index: int | None, id: str | None) -> dict[str, Any] | None:
        if index is not None:
            return self._by_index.get(index)
        if id is not None:
            return self._by_id.get(id)
        return self._calls[-1] if self._calls else None

    def _same(self, call: dict[str, Any], piece: dict[str, Any], id: str | None) -> bool:
        """True if the piece continues the call."""
        if id is not None:
            return call.get("id") in (None, id)
        for key, text in _BODIES:
            new, known = mapping(piece.get(key)), mapping(call.get(key))
            name = string(new.get("name"))
            if name is None or not known.get("name"):
                continue
            # No id, but a name again: another name, or whole arguments after whole ones, is the next call.
            whole = self._texts.last(known, text).rstrip().endswith("}")
            opening = as_text(new.get(text) or "").lstrip()[:1] in ("", "{")
            if name != known["name"] or (whole and opening):
                return False
        return True

    def _take(self, known: dict[str, Any], piece: dict[str, Any], text: str) -> None:
        value = piece.get(text)
        if value is not None:
            self._texts.add(known, text, as_text(value))
        fill(known, piece, text)


_IDENTITY = ("id", "created", "model")
_PLACE = ("index", "delta")
_SCALARS = (str, int, type(None))
_SPECIAL = ("role", "tool_calls", "reasoning_details", "content", "audio", "function_call")


class StreamAssembler(Assembler):
    """Takes in the chunks of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, ToolCalls] = {}
        self._about: dict[str, Any] | None = None
        """What the latest chunk has besides its choices, if that is plain."""

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one chunk; True if the model adds content in it."""
        about = {**event, "choices": None, "obfuscation": None}
        if (
            about == self._about
            and (message := self._message_of_text_delta(event.get("choices"))) is not None
        ):
            return self.texts.add(message, "content", event["choices"][0]["delta"]["content"])
        self._about = about if all(type(value) in _SCALARS for value in about.values()) else None
        self.fail(error_of(event), event)
        if not isinstance(event.get("choices"), list) and event is self.failure:
            return False
        for key in _IDENTITY:  # Azure's first chunk has empty ones
            self._body[key] = self._body.get(key) or event.get(key)
        groq = mapping(self._body.get("x_groq"))
        fill(groq, mapping(event.get("x_groq")))
        fill(self._body, event, "choices", "obfuscation", "x_groq", *_IDENTITY)
        if groq:
            self._body["x_groq"] = groq
        added = [self._choice(choice, number) for number, choice in enumerate(mappings(event.get("choices")))]
        return any(added)

    def _message_of_text_delta(self, choices: Any) -> dict[str, Any] | None:
        """Return the message that a chunk has a few letters for, if it has nothing else: nearly all do."""
        piece = choices[0] if type(choices) is list and len(choices) == 1 else None
        if type(piece) is not dict:
            return None
        index, delta = piece.get("index"), piece.get("delta")
        choice = self._choices.get(index) if type(index) is int else None
        if (
            choice is None
            or type(delta) is not dict
            or len(delta) != 1
            or type(delta.get("content")) is not str
        ):
            return None
        for key, value in piece.items():
            if key not in choice if value is None else key not in _PLACE:
                return None
        message = choice.get("message")
        return message if type(message) is dict and type(message.get("content")) is not list else None

    def done(self) -> None:
        """Take in ``[DONE]``."""
        self.complete = True

    def _ended(self) -> bool:
        """True once every choice has ended and the bill has come: there are servers without ``[DONE]``."""
        finished = [choice.get("finish_reason") for choice in self._choices.values()]
        return bool(finished) and all(finished) and usage(self._body) is not None

    def _choice(self, piece: dict[str, Any], number: int) -> bool:
        index = index_of(piece.get("index"))
        index = number if index is None else index
        choice = self._choices.setdefault(index, {"index": index, "finish_reason": None})
        fill(choice, piece, "delta", "message", "text", "logprobs", "index", "usage")
        if isinstance(piece.get("usage"), dict):  # Moonshot
            fill(self._body, {"usage": piece["usage"]})
        self._logprobs(choice, piece.get("logprobs"))
        if isinstance(piece.get("text"), str):  # old completions
            return self.texts.add(choice, "text", piece["text"])
        delta = piece.get("delta")
        return self._delta(choice, mapping(piece.get("message") if delta is None else delta))

    @staticmethod
    def _logprobs(choice: dict[str, Any], piece: object) -> None:
        known = choice.setdefault("logprobs", None)
        if isinstance(piece, dict) and isinstance(known, dict):
            for key, value in piece.items():
                if isinstance(value, list) and isinstance(known.get(key), list):
                    known[key] += value
                else:
                    fill(known, {key: value})
        elif piece is not None:
            choice["logprobs"] = piece

    def _delta(self, choice: dict[str, Any], delta: dict[str, Any]) -> bool:
        message = choice.setdefault("message", {"role": "assistant", "content": None})
        has_content = self._content(message, delta.get("content"))
        if string(delta.get("role")):
            message["role"] = delta["role"]
        for key, value in delta.items():
            if key not in _SPECIAL:
                has_content = self._field(message, key, value) or has_content
        if mappings(delta.get("tool_calls")):
            calls = message["tool_calls"] = message.get("tool_calls") or []
            known = self._calls.setdefault(choice["index"], ToolCalls(calls, self.texts))
            known.add(mappings(delta["tool_calls"]))
            has_content = True
        for piece in mappings(delta.get("reasoning_details")):
            has_content = self._detail(message.setdefault("reasoning_details", []), piece) or has_content
        for key in ("function_call", "audio"):
            for name, value in mapping(delta.get(key)).items():
                has_content = self._field(message.setdefault(key, {}), name, value) or has_content
        return has_content

    def _field(self, owner: dict[str, Any], key: str, value: object) -> bool:
        """Take in one field: reasoning, a refusal, or what a server invented."""
        if isinstance(value, str):
            return self.texts.add(owner, key, value)
        if isinstance(value, list) and isinstance(owner.get(key), list):
            owner[key] += value
        else:
            fill(owner, {key: value})
        return False

    def _content(self, message: dict[str, Any], piece: object) -> bool:
        """Take in content: text, or Mistral's parts, once there was one."""
        parts = message.get("content")
        if isinstance(piece, str) and not isinstance(parts, list):
            return self.texts.add(message, "content", piece)
        if isinstance(piece, str):
            piece = [{"type": "text", "text": piece}] if piece else []
        if not isinstance(piece, list):
            return False
        if not isinstance(parts, list):
            text = self.texts.take(message, "content")
            parts = message["content"] = [{"type": "text", "text": text}] if text else []
        return self._join(parts, piece)

    def _join(self, parts: list[dict[str, Any]], pieces: list[Any]) -> bool:
        has_content = [self._part(parts, piece) for piece in mappings(pieces)]
        return any(has_content)

    def _part(self, parts: list[dict[str, Any]], part: dict[str, Any]) -> bool:
        last = parts[-1] if parts and parts[-1].get("type") == part.get("type") else None
        kind = part.get("type")
        if last is not None and kind == "text":
            return self.texts.add(last, "text", part.get("text"))
        thoughts = part.get("thinking")
        if last is not None and isinstance(thoughts, list) and isinstance(last.get("thinking"), list):
            fill(last, part, "type", "thinking")
            return self._join(last["thinking"], thoughts)
        if isinstance(thoughts, list):
            part["thinking"] = mappings(thoughts)
        parts.append(part)
        return True

    def _detail(self, details: list[dict[str, Any]], piece: dict[str, Any]) -> bool:
        """Take in a piece of OpenRouter's reasoning: the same block as the last one, or a new one."""
        last = details[-1] if details else {}
        if any(last.get(key) != piece.get(key) for key in ("type", "index")) or not last:
            details.append(piece)
            return True
        if string(piece.get("id")) and string(last.get("id")) and piece["id"] != last["id"]:
            details.append(piece)
            return True
        for key in ("text", "summary", "data"):
            self.texts.add(last, key, piece.get(key))
        fill(last, piece, "text", "summary", "data")
        return True

    def body(self) -> dict[str, Any] | None:
        """Return the completion."""
        self.complete = self.complete or self._ended()
        if not self._choices and usage(self._body) is None:
            return None
        self.texts.join()
        body = self._body
        if body.get("usage") is None:
            body.pop("usage", None)
        if body.get("object") in (None, "", "chat.completion.chunk"):
            body["object"] = "chat.completion"
        return {**body, "choices": [self._choices[index] for index in sorted(self._choices)]}


# An answer as a stream again.

_ON_EACH_CHUNK = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_LAST = ("usage", "x_groq")
_SENT_APART = ("role", "content", "tool_calls", "function_call")


def stream_events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stream_events; the bill comes last, with no choice, as OpenAI sends it on request."""
    envelope = {key: body[key] for key in _ON_EACH_CHUNK if key in body}
    if envelope.get("object") in (None, "chat.completion"):
        envelope["object"] = "chat.completion.chunk"
    more = {key: value for key, value in body.items() if key not in (*_ON_EACH_CHUNK, *_LAST, "choices")}
    for number, choice in enumerate(mappings(body.get("choices"))):
        index = index_of(choice.get("index"))
        for piece in _choice(choice):
            place = {"index": number if index is None else index, **piece}
            yield {**envelope, **more, "choices": [place]}
            more = {}
    last = {key: body[key] for key in _LAST if body.get(key) is not None}
    if last:
        yield {**envelope, "choices": [], **last}


def _choice(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ended = {key: value for key, value in choice.items() if key not in ("index", "message", "text")}
    logprobs = ended.pop("logprobs", None)
    logged = {"logprobs": logprobs} if logprobs is not None else {}
    unfinished = {"finish_reason": None}
    if "message" not in choice:  # old completions
        for piece in text_pieces(choice.get("text")):
            yield {"text": piece, **unfinished, **logged}
            logged = {}
        yield {"text": "", "finish_reason": None, **ended}
        return
    for delta in _deltas(mapping(choice.get("message"))):
        yield {"delta": delta, **unfinished, **logged}
        logged = {}
    yield {"delta": {}, "finish_reason": None, **ended}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    others = {key: value for key, value in message.items() if key not in _SENT_APART}
    texts = {key: value for key, value in others.items() if type(value) is str and value}
    whole = {key: value for key, value in others.items() if key not in texts}
    first = "" if type(content) is str else None
    yield {"role": message.get("role") or "assistant", "content": first, **whole}
    for key, text in texts.items():  # reasoning, a refusal
        for piece in text_pieces(text):
            yield {key: piece}
    if type(content) is list:
        yield {"content": content}
    for piece in text_pieces(content):
        yield {"content": piece}
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        # Whole: OpenAI cuts the arguments into pieces, but Mistral's SDK refuses a piece without a name.
        yield {"tool_calls": [{"index": index, **call}]}
    old = message.get("function_call")
    if isinstance(old, dict):
        yield {"function_call": {**old, "arguments": ""}}
        for piece in text_pieces(old.get("arguments")):
            yield {"function_call": {"arguments": piece}}


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the pieces, one chunk each, of a stream that is this answer."""
    return [*map(sse.written, stream_events(body)), sse.DONE]


# Conversion from and to the neutral model.


def write_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """Return chat messages: the system prompt first, every result a message of its own."""
    messages: list[dict[str, Any]] = []
    if conversation.system:
        messages.append({"role": "system", "content": "\n\n".join(conversation.system)})
    for role, parts in conversation.messages:
        if role == "assistant":
            messages += _written_answer(parts, conversation.lost)
            continue
        messages += [
            _written_result(part, conversation.lost) for part in parts if isinstance(part, ToolResult)
        ]
        rest = [part for part in parts if isinstance(part, Text | Image)]
        if rest:
            messages.append({"role": "user", "content": _written_content(rest)})
    return messages


def _written_answer(parts: list[CommonPart], lost: Losses) -> list[dict[str, Any]]:
    # Answers are cut into texts anywhere, around a citation for instance.
    text = "".join(part.text for part in parts if isinstance(part, Text))
    calls = [
        {
            "id": part.id,
            "type": "function",
            "function": {"name": part.name, "arguments": _written_arguments(part.args)},
        }
        for part in parts
        if isinstance(part, ToolUse)
    ]
    for part in parts:
        if isinstance(part, Image):
            lost.add("an image the model made")
    if not text and not calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    return [{**message, "tool_calls": calls} if calls else message]


def _written_arguments(args: Any) -> str:
    if isinstance(args, str):
        return args
    return "{}" if args is None else as_json(args)


def _written_result(result: ToolResult, lost: Losses) -> dict[str, Any]:
    if result.failed:
        lost.add("the mark that a tool failed, whose text is kept")
    for part in result.parts:
        if isinstance(part, Image):
            lost.add("an image in a tool's result")
    return {"role": "tool", "tool_call_id": result.id, "content": text_of(result.parts)}


def _written_content(parts: list[Text | Image]) -> str | list[dict[str, Any]]:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": _url(part)}}
        for part in parts
    ]


def _url(image: Image) -> str:
    return image.url or f"data:{media_type_of(image)};base64,{image.data}"


def read_tool_choice(params: dict[str, Any]) -> str | None:
    """Return whether tools must be used: ``auto any none tool:NAME``."""
    choice = params.get("tool_choice")
    if isinstance(choice, str):
        return "any" if choice == "required" else choice
    return named_choice(choice)


def write_tool_choice(choice: str) -> dict[str, Any]:
    """Return the option for ``auto any none tool:NAME``."""
    kind, _, name = choice.partition(":")
    named = {"type": "function", "function": {"name": name}}
    return {"tool_choice": named if kind == "tool" else "required" if kind == "any" else kind}


def write_system(text: str) -> dict[str, Any]:
    """Return no option: the system prompt is the first message."""
    return {}


def write_tools(tools: list[Tool]) -> list[dict[str, Any]]:
    """Return the declarations of tools."""
    return [{"type": "function", "function": described(tool, "parameters")} for tool in tools]
