"""A trip-planning agent with three tools, recorded by reenact.

Used by ``reenact demo`` and by hand: ``python -m reenact.demo.agent --base-url URL``. Meant to be read:
recording is the lines marked (*). The agent fails; its trace shows why.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import reenact

tap = reenact.Tap()  # (*) without a path it records into the current run

SYSTEM = "You book hotels. Use the tools; never go over the traveller's budget."
TASK = "Book 3 nights in Lisbon from 2026-11-03, for at most 400 EUR in total."
BUDGET_EUR = 400

RATES_EUR = {"casa-do-tejo": 89, "lisboa-plaza": 142}
"""What a night costs when it is booked."""

PRICE_FEED = {"casa-do-tejo": 8900, "lisboa-plaza": 142}
"""What the hotels' partners report. One of them reports cents, and nobody noticed."""


class OverBudget(Exception):
    """The booking would cost more than the traveller allows."""


@tap.tool  # (*) arguments, result or exception, duration
def search_hotels(city: str, check_in: str, nights: int) -> dict[str, Any]:
    """Find hotels with free rooms."""
    return {"city": city, "check_in": check_in, "nights": nights, "hotels": list(RATES_EUR)}


@tap.tool
def get_price(hotel: str) -> dict[str, Any]:
    """Price of one night."""
    return {"hotel": hotel, "per_night": PRICE_FEED[hotel], "currency": "EUR"}


@tap.tool
def book(hotel: str, nights: int) -> dict[str, Any]:
    """Book a room; refuses what the traveller cannot afford."""
    total = RATES_EUR[hotel] * nights
    if total > BUDGET_EUR:
        raise OverBudget(f"{hotel}: {total} EUR for {nights} nights, but the budget is {BUDGET_EUR} EUR")
    return {"hotel": hotel, "total": total, "confirmation": "R-1001"}


def schema(**fields: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields)}


TOOLS: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Any]]] = {
    "search_hotels": (search_hotels, schema(city="string", check_in="string", nights="integer")),
    "get_price": (get_price, schema(hotel="string")),
    "book": (book, schema(hotel="string", nights="integer")),
}


def ask_model(base_url: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Send the conversation, return the model's answer."""
    tools = [
        {"name": name, "description": function.__doc__, "input_schema": fields}
        for name, (function, fields) in TOOLS.items()
    ]
    body = {
        "model": "scripted-demo-model",
        "max_tokens": 500,
        "system": SYSTEM,
        "tools": tools,
        "messages": messages,
    }
    call = tap.record_model_request(body, provider="anthropic")  # (*) on disk before it is sent
    try:
        answer = post(f"{base_url}/v1/messages", body)
    except OSError as error:
        tap.record_model_response(None, call=call, error=error)
        raise
    tap.record_model_response(answer, call=call)  # (*)
    return answer


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310
        url, data=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    # No proxy: the scripted model is on this machine, whatever the environment says.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=10) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def plan_trip(base_url: str, task: str = TASK) -> str:
    """The agent loop: ask, use the tools it wants, ask again, until it has nothing left to do."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    while True:
        answer = ask_model(base_url, messages)
        messages.append({"role": "assistant", "content": answer["content"]})
        uses = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not uses:
            return "".join(block["text"] for block in answer["content"] if block["type"] == "text")
        results = []
        for use in uses:
            function, _ = TOOLS[use["name"]]
            output = json.dumps(function(**use["input"]))
            results.append({"type": "tool_result", "tool_use_id": use["id"], "content": output})
        messages.append({"role": "user", "content": results})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m reenact.demo.agent", description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", required=True, help="where the (scripted) model listens")
    base_url = parser.parse_args(arguments).base_url
    meta = {"agent_version": "1.0", "environment": "demo"}
    with reenact.run("trip-planner", input={"task": TASK}, metadata=meta):  # (*)
        print(plan_trip(base_url))


if __name__ == "__main__":
    main()
