"""A scripted stand-in for a model on a loopback port, in the formats of Anthropic and OpenAI.

Used by ``reenact demo``, ``reenact demo --serve`` and their tests. It is a few fixed rules, not a model, and
marks every answer as scripted. The rules look at the tools and tool results in the request, so an edited
conversation gets another answer.
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

MODEL = "scripted-demo-model"
KEY = "not-a-key"
"""A key that the SDKs accept; the server does not look at it."""

HILLS_TOOL, HILLS = "lookup", 2
NO_TOOLS = "at once"
"""A system prompt with these words gets an answer without a tool call."""

Json = dict[str, Any]


class ToolUse(NamedTuple):
    """A tool call that the script asks for."""

    id: str
    name: str
    args: Json


class Turn(NamedTuple):
    """One answer of the scripted model, before it is written in a provider's format."""

    text: str
    uses: tuple[ToolUse, ...] = ()


# The script


def next_turn(tools: set[str], results: dict[str, list[str]], system: str = "") -> Turn:
    """Return the next answer, from the tools on offer and their results so far."""
    if "search_hotels" in tools:
        return _book_a_hotel(results)
    done = len(results.get(HILLS_TOOL, ()))
    if HILLS_TOOL in tools and done < HILLS and NO_TOOLS not in system.lower():
        question = {"question": f"How high is hill {done + 1}?"}
        return Turn(f"Looking, round {done + 1}.", (_use(HILLS_TOOL, done + 1, question),))
    return Turn("Lisbon has seven hills.")


def _book_a_hotel(results: dict[str, list[str]]) -> Turn:
    """Search, get all prices, book the cheapest, say goodbye."""
    if "search_hotels" not in results:
        args = {"city": "Lisbon", "check_in": "2026-11-03", "nights": 3}
        return Turn("Let me see which hotels have rooms.", (_use("search_hotels", 1, args),))
    if "get_price" not in results:
        hotels = json.loads(results["search_hotels"][0])["hotels"]
        uses = [_use("get_price", number, {"hotel": hotel}) for number, hotel in enumerate(hotels, 2)]
        return Turn("", tuple(uses))
    if "book" not in results:
        prices = [json.loads(result) for result in results["get_price"]]
        offer = min(prices, key=lambda price: price["per_night"])
        rest = ", ".join(f"{p['hotel']} asks {p['per_night']} EUR" for p in prices if p is not offer)
        text = f"{offer['hotel']} is the cheapest at {offer['per_night']} EUR a night ({rest}). Booking it."
        return Turn(text, (_use("book", 3, {"hotel": offer["hotel"], "nights": 3}),))
    booking = json.loads(results["book"][0])
    return Turn(f"Your room at {booking['hotel']} is booked: {booking['total']} EUR for 3 nights.")


def _use(name: str, number: int, args: Json) -> ToolUse:
    return ToolUse(f"toolu_scripted_{name}_{number}", name, args)


# Anthropic Messages


def answer_to(body: Json) -> Json:
    """Return a Messages API response to a request body; tokens are a rough count of its characters."""
    turn = next_turn({tool["name"] for tool in body.get("tools") or ()}, *_anthropic_state(body))
    blocks: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    blocks += [{"type": "tool_use", "id": use.id, "name": use.name, "input": use.args} for use in turn.uses]
    return {
        "id": f"msg_scripted_{len(body['messages'])}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", MODEL),
        "content": blocks,
        "stop_reason": "tool_use" if turn.uses else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": _tokens(body), "output_tokens": _tokens(blocks)},
    }


def _anthropic_state(body: Json) -> tuple[dict[str, list[str]], str]:
    """Return the tool results by tool name, and the system prompt."""
    contents = [message["content"] for message in body["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    results: dict[str, list[str]] = {}
    for block in blocks:
        if block["type"] == "tool_result":
            results.setdefault(names[block["tool_use_id"]], []).append(block.get("content", ""))
    return results, json.dumps(body.get("system", ""))


def _anthropic_events(answer: Json) -> Iterator[tuple[str, Json]]:
    """Yield a response as the events of a stream."""
    counts = answer["usage"]
    start = {**answer, "content": [], "stop_reason": None, "usage": {**counts, "output_tokens": 1}}
    yield "message_start", {"message": start}
    for index, block in enumerate(answer["content"]):
        if block["type"] == "text":
            empty: Json = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        else:
            empty = {**block, "input": {}}
            pieces = _pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield "content_block_start", {"index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    end = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": counts["output_tokens"]}}
    yield "message_stop", {}


def _anthropic_stream(answer: Json, body: Json) -> Iterator[bytes]:
    for name, event in _anthropic_events(answer):
        yield f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n".encode()


# OpenAI Chat Completions


def completion_to(body: Json) -> Json:
    """Return a Chat Completions response to a request body."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    turn = next_turn(tools, *_openai_state(body))
    message: Json = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if turn.uses:
        message["tool_calls"] = [
            {
                "id": use.id,
                "type": "function",
                "function": {"name": use.name, "arguments": json.dumps(use.args)},
            }
            for use in turn.uses
        ]
    sent, received = _tokens(body), _tokens(message)
    choice = {"index": 0, "message": message, "logprobs": None}
    return {
        "id": f"chatcmpl-scripted-{len(body['messages'])}",
        "object": "chat.completion",
        "created": 1763200000,
        "model": body.get("model", MODEL),
        "choices": [{**choice, "finish_reason": "tool_calls" if turn.uses else "stop"}],
        "usage": {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received},
    }


def _openai_state(body: Json) -> tuple[dict[str, list[str]], str]:
    """Return the tool results by tool name, and the system prompt."""
    messages = body["messages"]
    names = {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    results: dict[str, list[str]] = {}
    for message in messages:
        if message["role"] == "tool":
            results.setdefault(names[message["tool_call_id"]], []).append(message.get("content", ""))
    return results, json.dumps([m["content"] for m in messages if m["role"] in ("system", "developer")])


def _openai_stream(answer: Json, body: Json) -> Iterator[bytes]:
    """Yield a response as the chunks of a stream."""
    (choice,) = answer["choices"]
    message = choice["message"]
    calls = [{"index": place, **call} for place, call in enumerate(message.get("tool_calls", ()))]
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(message["content"] or "")]
    deltas += [{"tool_calls": [call]} for call in calls]
    ends: list[str | None] = [*[None] * len(deltas), choice["finish_reason"]]
    head = {**answer, "object": "chat.completion.chunk", "usage": None}
    for delta, end in zip([*deltas, {}], ends, strict=True):
        part = {"index": 0, "delta": delta, "finish_reason": end}
        yield f"data: {json.dumps({**head, 'choices': [part]})}\n\n".encode()
    if (body.get("stream_options") or {}).get("include_usage"):
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': answer['usage']})}\n\n".encode()
    yield b"data: [DONE]\n\n"


# The server

ENDPOINTS = {
    "/v1/messages": (answer_to, _anthropic_stream),
    "/v1/chat/completions": (completion_to, _openai_stream),
}


def _tokens(value: Any) -> int:
    return len(json.dumps(value)) // 4


def _pieces(text: str, size: int = 8) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path not in ENDPOINTS:
            self._fail(404, f"the scripted model serves {' and '.join(ENDPOINTS)}, not {path}")
            return
        respond, stream = ENDPOINTS[path]
        try:
            body = json.loads(data)
            answer = respond(body)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            self._fail(400, f"the scripted model does not understand this request: {error!r}")
            return
        if body.get("stream"):
            self._start(200, "text/event-stream")
            for event in stream(answer, body):
                self.wfile.write(event)
        else:
            self._send(200, answer)

    def _fail(self, status: int, message: str) -> None:
        kind = "not_found_error" if status == 404 else "invalid_request_error"
        self._send(status, {"type": "error", "error": {"type": kind, "message": message}})

    def _send(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self._start(status, "application/json", {"content-length": str(len(data))})
        self.wfile.write(data)

    def _start(self, status: int, content_type: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": content_type, "x-scripted": "true", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet: the demo's own output is the point."""


class _Server(socketserver.ThreadingTCPServer):
    # Not http.server's own class: that one looks up the host's name, which can hang without a network.
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay quiet: a client that hangs up in the middle of a response is normal."""


@contextlib.contextmanager
def scripted_model(port: int = 0) -> Iterator[str]:
    """Serve on a loopback port, a free one by default, while the block runs; yield the base URL."""
    with _Server(("127.0.0.1", port), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def variables(base_url: str) -> dict[str, str]:
    """Return the environment variables that point the SDKs of Anthropic and OpenAI here."""
    return {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{base_url}/v1",
        "OPENAI_API_KEY": KEY,
    }
