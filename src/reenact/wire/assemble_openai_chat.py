"""A streamed answer of OpenAI Chat Completions put together: chunks with deltas, then ``[DONE]``.

One of the assemblers behind stream.py. Most of it is for the many servers that speak this shape
each in their own way (also Mistral's, Groq's, OpenRouter's, Azure's, DeepSeek's, Ollama's /v1).
"""

from __future__ import annotations

from . import openai_chat
from .pieces import Assembler, fill, index_of
from .toolpieces import ToolCalls
from .values import mapping, mappings, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems

_IDENTITY = ("id", "created", "model")
_EACH = ("choices", "obfuscation")
_PLACE = ("index", "delta")
_SCALARS = (str, int, type(None))
_SPECIAL = ("role", "tool_calls", "reasoning_details", "content", "audio", "function_call")


class Chat(Assembler):
    """Takes in the chunks of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, ToolCalls] = {}
        self._about: dict[str, Any] = {}
        """What the latest chunk said besides its choices."""

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one chunk; True if the model said something in it."""
        message = self._only_says_more(event)
        if message is not None:
            said = self.texts.add(message, "content", event["choices"][0]["delta"]["content"])
            self.only_said = "content", self.texts.of(message, "content")
            return said
        self._about = {key: value for key, value in event.items() if key not in _EACH}
        self.fail(openai_chat.error_of(event), event)
        if not isinstance(event.get("choices"), list) and event is self.failure:
            return False
        for key in _IDENTITY:  # Azure's first chunk has empty ones
            self._body[key] = self._body.get(key) or event.get(key)
        groq = mapping(self._body.get("x_groq"))
        fill(groq, mapping(event.get("x_groq")))
        fill(self._body, event, "choices", "obfuscation", "x_groq", *_IDENTITY)
        if groq:
            self._body["x_groq"] = groq
        said_by = [
            self._choice(choice, number) for number, choice in enumerate(mappings(event.get("choices")))
        ]
        return any(said_by)

    def _only_says_more(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the message that a chunk has a few letters for, if it has nothing else: nearly all do."""
        choices = event.get("choices")
        if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
            return None
        piece = choices[0]
        index, delta = piece.get("index"), piece.get("delta")
        if type(index) is not int or type(delta) is not dict or len(delta) != 1:
            return None
        choice = self._choices.get(index)
        if choice is None or type(delta.get("content")) is not str:
            return None
        for key, value in piece.items():
            if key not in _PLACE and (value is not None or key not in choice):
                return None
        about = self._about
        if len(event) - len(about) != (2 if "obfuscation" in event else 1):
            return None
        for key, value in event.items():
            if key not in _EACH and (type(value) not in _SCALARS or about.get(key, self) != value):
                return None
        message = choice.get("message")
        return message if type(message) is dict and type(message.get("content")) is not list else None

    def done(self) -> None:
        """Take in ``[DONE]``."""
        self.complete = True

    def _ended(self) -> bool:
        """True once every choice has ended and the bill has come: there are servers without ``[DONE]``."""
        finished = [choice.get("finish_reason") for choice in self._choices.values()]
        return bool(finished) and all(finished) and openai_chat.usage(self._body) is not None

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
        said = self._content(message, delta.get("content"))
        if string(delta.get("role")):
            message["role"] = delta["role"]
        for key, value in delta.items():
            if key not in _SPECIAL:
                said = self._field(message, key, value) or said
        if mappings(delta.get("tool_calls")):
            calls = message["tool_calls"] = message.get("tool_calls") or []
            known = self._calls.setdefault(choice["index"], ToolCalls(calls, self.texts))
            known.add(mappings(delta["tool_calls"]))
            said = True
        for piece in mappings(delta.get("reasoning_details")):
            said = self._detail(message.setdefault("reasoning_details", []), piece) or said
        for key in ("function_call", "audio"):
            for name, value in mapping(delta.get(key)).items():
                said = self._field(message.setdefault(key, {}), name, value) or said
        return said

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
        said = [self._part(parts, piece) for piece in mappings(pieces)]
        return any(said)

    def _part(self, parts: list[dict[str, Any]], part: dict[str, Any]) -> bool:
        last = parts[-1] if parts and parts[-1].get("type") == part.get("type") else None
        kind = part.get("type")
        if last is not None and kind == "text":
            return self.texts.add(last, "text", part.get("text"))
        inner = part.get("thinking")
        if last is not None and isinstance(inner, list) and isinstance(last.get("thinking"), list):
            fill(last, part, "type", "thinking")
            return self._join(last["thinking"], inner)
        if isinstance(inner, list):
            part["thinking"] = mappings(inner)
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
        if not self._choices and openai_chat.usage(self._body) is None:
            return None
        self.texts.join()
        body = self._body
        if body.get("usage") is None:
            body.pop("usage", None)
        if body.get("object") in (None, "", "chat.completion.chunk"):
            body["object"] = "chat.completion"
        return {**body, "choices": [self._choices[index] for index in sorted(self._choices)]}
