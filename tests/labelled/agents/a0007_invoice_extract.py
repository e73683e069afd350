"""An importer asks for an invoice as JSON and stores it."""

import json

from kit import Agent

PAGES = [
    "Invoice 2026-118, Kestrel Ltd.\n"
    + "\n".join(f"item {n}: valve DN{n * 5}, 3 pcs, 41.20 EUR" for n in range(1, 41))
]


def read_page(number: int) -> str:
    return PAGES[number - 1]


def store(invoice: dict) -> str:
    print("stored", invoice["number"])


LINES = ", ".join(f'{{"item": "valve DN{n * 5}", "pieces": 3, "price": 41.20}}' for n in range(1, 15))
MODEL = [
    ("read_page", {"number": 1}),
    {
        "text": '{"number": "2026-118", "supplier": "Kestrel Ltd.", "lines": [' + LINES + ', {"item": "val',
        "stop": "length",
    },
]
LABEL = (
    "output limit",
    "the answer ends at the token limit, so its JSON is not whole",
    "response 2",
    "request 2",
)

if __name__ == "__main__":
    agent = Agent(
        read_page, limit=300, wire="anthropic", system="Answer with one JSON object and nothing else."
    )
    store(json.loads(agent.run("Extract number, supplier and lines of the invoice on page 1.")))
