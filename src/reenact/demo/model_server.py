"""A scripted stand-in for a model on a loopback port, in the shape of the Anthropic Messages API.

Used by ``reenact demo`` and its tests. It is a few fixed rules, not a model, and says so in every
answer; it looks at the tool results in the request, so an edited conversation gets another answer.
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

MODEL = "scripted-demo-model"

Block = dict[str, Any]


def next_blocks(messages: list[dict[str, Any]]) -> list[Block]:
    """Return the content of the next answer: search, ask all prices, book the cheapest, say goodbye."""
    results = _tool_results(messages)
    number = sum(message["role"] == "assistant" for message in messages) + 1
    if "search_hotels" not in results:
        args = {"city": "Lisbon", "check_in": "2026-11-03", "nights": 3}
        return [_say("Let me see which hotels have rooms."), _use("search_hotels", number, args)]
    if "get_price" not in results:
        hotels = results["search_hotels"][0]["hotels"]
        return [_use("get_price", number + place, {"hotel": name}) for place, name in enumerate(hotels)]
    if "book" not in results:
        offer = min(results["get_price"], key=lambda price: price["per_night"])
        others = [price for price in results["get_price"] if price is not offer]
        reason = ", ".join(f"{price['hotel']} asks {price['per_night']} EUR" for price in others)
        text = f"{offer['hotel']} is the cheapest at {offer['per_night']} EUR a night ({reason}). Booking it."
        return [_say(text), _use("book", number, {"hotel": offer["hotel"], "nights": 3})]
    booking = results["book"][0]
    return [_say(f"Your room at {booking['hotel']} is booked: {booking['total']} EUR for 3 nights.")]


def _say(text: str) -> Block:
    return {"type": "text", "text": text}


def _use(name: str, number: int, args: dict[str, Any]) -> Block:
    return {"type": "tool_use", "id": f"toolu_scripted_{name}_{number}", "name": name, "input": args}


def _tool_results(messages: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return what each tool has answered so far, by the tool's name."""
    blocks = [
        block for message in messages if isinstance(message["content"], list) for block in message["content"]
    ]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    found: dict[str, list[Any]] = {}
    for block in blocks:
        if block["type"] == "tool_result":
            found.setdefault(names[block["tool_use_id"]], []).append(json.loads(block["content"]))
    return found


def answer_to(body: dict[str, Any]) -> dict[str, Any]:
    """Return a Messages API answer to a request body; tokens are a rough count of its characters."""
    blocks = next_blocks(body["messages"])
    wants_tools = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_scripted_{len(body['messages'])}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": blocks,
        "stop_reason": "tool_use" if wants_tools else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": len(json.dumps(blocks)) // 4},
    }


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        try:
            status, answer = 200, answer_to(json.loads(self.rfile.read(length)))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            message = f"the scripted model does not understand this request: {error!r}"
            fault = {"type": "invalid_request_error", "message": message}
            status, answer = 400, {"type": "error", "error": fault}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-scripted", "true")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet: the demo's own output is the point."""


class _Server(socketserver.ThreadingTCPServer):
    # Not http.server's own class: that one looks up the host's name, which can hang without a network.
    daemon_threads = True
    allow_reuse_address = True


@contextlib.contextmanager
def scripted_model() -> Iterator[str]:
    """Serve on a free loopback port while the block runs; gives the base URL."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
