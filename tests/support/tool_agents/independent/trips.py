"""Travel agent: thread pool with timeouts, and every tool goes through a chain of middlewares."""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor, TimeoutError as FutureTimeout
from typing import Any, Callable, NamedTuple

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("trips")

Handler = Callable[[dict], Any]
Middleware = Callable[["Spec", Handler, dict], Any]
_file_lock = threading.Lock()


class Spec(NamedTuple):
    name: str
    func: Callable[..., Any]
    types: dict[str, type]
    defaults: dict[str, Any] = {}
    timeout: float = 20.0


class Flaky(ConnectionError):
    pass


class Booked(NamedTuple):
    code: str
    price: int


def effect(name: str) -> None:
    with _file_lock, open("effects.txt", "a") as f:
        f.write(name + "\n")


# ---- tools
def search_flights(origin: str, dest: str, max_price: int) -> list[str]:
    effect("search_flights")
    time.sleep(0.02)
    offers = {("OSL", "FCO"): {"DY1872": 120, "SK4711": 310}, ("FCO", "OSL"): {"DY1873": 95}}
    return [f"{code} {price}" for code, price in offers[origin, dest].items() if price <= max_price]


_attempts = {"hotel": 0}


def find_hotel(city: str, nights: int, stars: int) -> str:
    effect("find_hotel")
    _attempts["hotel"] += 1
    if _attempts["hotel"] == 1:
        raise Flaky("connection reset by hotel backend")
    return f"{city}: Albergo {'*' * stars}, {nights} nights, {nights * 80} EUR"


def convert(rates: dict[str, float], amount: float, currency: str) -> float:
    effect("convert")
    return round(amount * rates[currency], 2)


def book(code: str, passengers: int) -> Booked:
    effect("book")
    if passengers < 1:
        raise ValueError("need at least one passenger")
    return Booked(code, 120 * passengers)


SPECS = {
    s.name: s
    for s in [
        Spec(
            "search_flights",
            search_flights,
            {"origin": str, "dest": str, "max_price": int},
            {"max_price": 200},
        ),
        Spec("find_hotel", find_hotel, {"city": str, "nights": int, "stars": int}, {"stars": 3}),
        Spec(
            "convert",
            functools.partial(convert, {"NOK": 11.5, "USD": 1.1}),
            {"amount": float, "currency": str},
        ),
        Spec("book", book, {"code": str, "passengers": int}, timeout=30),
    ]
}


# ---- middlewares, outermost first
def errors_to_text(spec: Spec, nxt: Handler, args: dict) -> Any:
    try:
        return nxt(args)
    except Exception as e:
        return f"{spec.name}: {type(e).__name__}: {e}"


def coerce(spec: Spec, nxt: Handler, args: dict) -> Any:
    return nxt({k: t(({**spec.defaults, **args})[k]) for k, t in spec.types.items()})


_cache: dict[str, Any] = {}


def cache(spec: Spec, nxt: Handler, args: dict) -> Any:
    if spec.name == "book":
        return nxt(args)
    key = spec.name + json.dumps(args, sort_keys=True)
    if key not in _cache:
        _cache[key] = nxt(args)
    return _cache[key]


def retry(spec: Spec, nxt: Handler, args: dict, times: int = 3) -> Any:
    for left in reversed(range(times)):
        try:
            return nxt(args)
        except ConnectionError:
            if not left:
                raise


def build(spec: Spec, middlewares: list[Middleware]) -> Handler:
    handler: Handler = lambda args: spec.func(**args)
    for m in reversed(middlewares):
        handler = functools.partial(m, spec, handler)
    return handler


PLAN = (
    'PLAN [[["search_flights", {"origin": "OSL", "dest": "FCO"}], ["search_flights", {"origin": "FCO", "dest": '
    '"OSL", "max_price": "100"}], ["find_hotel", {"city": "Rome", "nights": "3"}]], '
    '[["convert", {"amount": 240, "currency": "NOK"}], ["convert", {"amount": "12", "currency": "XXX"}]], '
    '[["search_flights", {"origin": "OSL", "dest": "FCO", "max_price": 200}]], '
    '[["book", {"code": "DY1872", "passengers": "2"}], ["book", {"code": "DY1873", "passengers": 0}]]]'
)


def main() -> None:
    handlers = {n: build(s, [errors_to_text, coerce, cache, retry]) for n, s in SPECS.items()}
    js = {str: "string", int: "integer", float: "number"}
    tools = [
        {
            "type": "function",
            "function": {
                "name": s.name,
                "parameters": {
                    "type": "object",
                    "properties": {k: {"type": js[t]} for k, t in s.types.items()},
                },
            },
        }
        for s in SPECS.values()
    ]
    messages: list[dict] = [{"role": "user", "content": PLAN}]
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="tool") as pool:
        while True:
            req = urllib.request.Request(
                os.environ["MODEL_URL"] + "/v1/chat/completions",
                json.dumps({"model": "m", "messages": messages, "tools": tools}).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(req) as resp:
                reply = json.load(resp)["choices"][0]["message"]
            messages.append(reply)
            if not reply.get("tool_calls"):
                log.info("final: %s", reply["content"])
                return
            running = [
                (c, pool.submit(handlers[c["function"]["name"]], json.loads(c["function"]["arguments"])))
                for c in reply["tool_calls"]
            ]
            for call, future in running:
                try:
                    out = str(future.result(SPECS[call["function"]["name"]].timeout))
                except FutureTimeout:
                    out = "timed out"
                log.info("%s %s", call["function"]["name"], out)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": out})


if __name__ == "__main__":
    main()
