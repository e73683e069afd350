"""An analyst counts the customers that cancelled in a quarter."""

from kit import Agent

CANCELLED = [{"customer": f"K{n:04d}", "reason": "price" if n % 3 else "support"} for n in range(1, 138)]


def cancellations(quarter: str, page: int = 1) -> dict:
    rows = CANCELLED[(page - 1) * 25 : page * 25]
    return {"rows": rows, "page": page, "pages": 6}


def write_report(title: str, text: str) -> str:
    return "saved as report-71.md"


MODEL = [
    ("cancellations", {"quarter": "2026-Q3"}),
    [
        "In total 25 customers cancelled, 17 of them because of the price.",
        (
            "write_report",
            {"title": "Churn 2026-Q3", "text": "25 customers cancelled; 17 named the price, 8 the support."},
        ),
    ],
    "The report is saved: 25 cancellations in the third quarter, two thirds because of the price.",
]
LABEL = (
    "partial page",
    "the first of six pages is taken as all cancellations",
    "result cancellations 1",
    "response 2",
)

if __name__ == "__main__":
    agent = Agent(cancellations, write_report, wire="openai", system="You are a careful analyst.")
    print(agent.run("How many customers cancelled in 2026-Q3, and why? Write a short report."))
