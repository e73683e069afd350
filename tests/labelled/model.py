"""A model that answers from a script, over the wire formats of the scripted provider.

A script is a list of turns; a program with several conversations has a dict of lists, each under a text that only
the requests of that conversation contain. A turn is

- a text, or `(tool, arguments)`, or a list of these for a response with several parts;
- or a dict: `{"status": 529}`, `{"text": …, "stop": "length"}`, `{"turn": …, "pieces": 5}` for a stream that breaks
  off after five pieces, `{"turn": …, "arguments": '{"a'}` for arguments that are not JSON.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from support.provider import Provider
from support.provider.answers import Answer, Ask, Dialect, json_answer
from support.provider.dialects.anthropic import MESSAGES
from support.provider.dialects.openai_chat import CHAT
from support.provider.dialects.openai_responses import RESPONSES
from support.provider.script import ToolUse, Turn, Usage

DIALECTS = {"/v1/messages": MESSAGES, "/chat/completions": CHAT, "/responses": RESPONSES}
RETRY_AT_ONCE = {"retry-after-ms": "1"}


class Conversation:
    """One script, and how far it is."""

    def __init__(self, name: str, turns: list[Any]) -> None:
        self.name, self.turns, self.done = name, turns, 0


class ScriptedModel(Provider):
    """Answers the nth request of a conversation with its nth turn."""

    def __init__(self) -> None:
        super().__init__()
        self._scripts: dict[str, dict[str, Conversation]] = {}
        self._turning = threading.Lock()

    def url_for(self, name: str, script: Any) -> str:
        """The base URL of a program; `name` must be new."""
        scripts = script if isinstance(script, dict) else {"": script}
        self._scripts[name] = {
            key: Conversation(f"{name}{n}", turns) for n, (key, turns) in enumerate(scripts.items())
        }
        return self.url(f"text@{name}")

    def left(self, name: str) -> int:
        """How many turns were not requested."""
        return sum(len(each.turns) - each.done for each in self._scripts[name].values())

    def _answer(self, ask: Ask) -> Answer:
        name = ask.scenario.path.rpartition("@")[2]
        dialect = next(each for path, each in DIALECTS.items() if ask.path.endswith(path))
        body = ask.json()
        text = json.dumps(body, ensure_ascii=False)
        talk = next(talk for key, talk in self._scripts[name].items() if key in text)
        with self._turning:
            talk.done += 1
            number = talk.done
        return _speak(dialect, body, talk.turns[number - 1], f"{talk.name}{number:03d}", len(text) // 4)


def _speak(dialect: Dialect, body: Any, scripted: Any, key: str, tokens: int) -> Answer:
    special = scripted if isinstance(scripted, dict) else {"turn": scripted}
    if "status" in special:
        error, headers = dialect.failure(special["status"])
        return json_answer(error, special["status"], {**headers, **RETRY_AT_ONCE})
    turn = _turn(special.get("turn", special.get("text")), key, tokens, special.get("stop"))
    if not body.get("stream"):
        whole = dialect.whole(turn, body)
        if "arguments" in special:
            whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = special["arguments"]
        return json_answer(whole, headers=dialect.headers)
    pieces = dialect.stream(turn, body)[: special.get("pieces")]
    return Answer(pieces, 200, {"content-type": dialect.stream_type, **dialect.headers})


def _turn(scripted: Any, key: str, tokens: int, stop: str | None) -> Turn:
    parts = scripted if isinstance(scripted, list) else [scripted]
    text = "".join(part for part in parts if isinstance(part, str))
    calls = [part for part in parts if not isinstance(part, str)]
    tools = tuple(ToolUse(f"call_{key}{n}", name, args) for n, (name, args) in enumerate(calls, 1))
    usage = Usage(tokens, len(text) // 4 + sum(12 + len(json.dumps(args)) // 4 for _, args in calls) + 1)
    return Turn(key, text, "", tools, stop or ("tools" if tools else "end"), usage)
