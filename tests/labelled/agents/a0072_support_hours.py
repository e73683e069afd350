"""A tool answers for another year than it was asked for, because its argument has another name in the service."""

from kit import Agent

YEARS = {"2024": 118, "2025": 164}


def service(**query) -> dict:
    year = query.get("fiscal_year", "2024")
    return {"hours": YEARS[year], "customer": query["customer"]}


def support_hours(customer: str, year: str) -> dict:
    return service(customer=customer, year=year)  # the service ignores what it does not know


def send_invoice(customer: str, hours: int, eur: float) -> str:
    return "invoice sent"


MODEL = [
    ("support_hours", {"customer": "Larsen", "year": "2025"}),
    [
        "118 hours at 95 EUR are 11210 EUR.",
        ("send_invoice", {"customer": "Larsen", "hours": 118, "eur": 11210.0}),
    ],
    "Larsen was invoiced for the 118 support hours of 2025: 11210.00 EUR.",
]
LABEL = (
    "wrong entity",
    "support_hours returns the hours of 2024, because the service knows the argument as fiscal_year",
    "result support_hours 1",
)

if __name__ == "__main__":
    print(
        Agent(support_hours, send_invoice, wire="messages").run(
            "Invoice Larsen for the support hours of 2025 at 95 EUR."
        )
    )
