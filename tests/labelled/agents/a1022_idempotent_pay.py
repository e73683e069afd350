"""A transfer times out; the agent looks whether it was booked before it acts."""

from kit import Agent

BOOKED = []


def transfer(account: str, eur: float, key: str) -> dict:
    if key not in BOOKED:
        BOOKED.append(key)
        raise TimeoutError("no answer from the bank within 10 s")
    return {"state": "booked", "key": key}


def transfers(account: str) -> list:
    return [{"account": account, "eur": 88.0, "key": key} for key in BOOKED]


MODEL = [
    ("transfer", {"account": "DE02-4471", "eur": 88.0, "key": "rent-2026-11"}),
    ["No answer. Looking whether it was booked.", ("transfers", {"account": "DE02-4471"})],
    "The bank was slow to answer, but the transfer of 88.00 EUR to DE02-4471 was booked once (rent-2026-11).",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(transfer, transfers, wire="anthropic").run("Pay 88 EUR to DE02-4471, key rent-2026-11."))
    assert len(BOOKED) == 1
