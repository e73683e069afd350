"""A portfolio assistant sells when the price is above a limit."""

import functools
import itertools

from kit import Agent

TICKS = itertools.chain([412.5, 398.1, 371.4], itertools.repeat(371.4))


@functools.cache
def quote(symbol: str) -> dict:
    return {"symbol": symbol, "price": next(TICKS), "at": "2026-11-03T09:00:04Z"}


def clock() -> str:
    return "2026-11-03T15:29:40Z"


def sell(symbol: str, shares: int, limit: float) -> dict:
    return {"state": "rejected", "reason": "limit 410.00 is 10.4 % above the market"}


MODEL = [
    ("quote", {"symbol": "ASML"}),
    "ASML is at 412.50 in the morning. I will check again before the close.",
    ("clock", {}),
    ("quote", {"symbol": "ASML"}),
    ["ASML is at 412.50, above 410. Selling.", ("sell", {"symbol": "ASML", "shares": 30, "limit": 410.0})],
    "I tried to sell 30 ASML at 410.00, but the exchange rejected the order.",
]
LABEL = (
    "stale cache",
    "the second quote comes from the cache of the morning, six hours old",
    "result quote 2",
    "sent quote 2",
)

if __name__ == "__main__":
    agent = Agent(quote, clock, sell, wire="openai-stream")
    print(agent.run("What does ASML trade at?"))
    print(agent.run("It is almost the close. Sell my 30 ASML if it is above 410."))
