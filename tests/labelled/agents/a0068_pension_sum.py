"""An adviser adds numbers of three tools and is wrong by one of them."""

from kit import Agent


def pension(source: str) -> dict:
    return {"source": source, "eur_per_month": {"state": 1140.5, "company": 412.0, "private": 268.25}[source]}


def save_plan(total: float) -> str:
    return "plan saved"


MODEL = [
    [
        ("pension", {"source": "state"}),
        ("pension", {"source": "company"}),
        ("pension", {"source": "private"}),
    ],
    ["1140.50 + 412.00 + 268.25 = 1720.75 EUR a month.", ("save_plan", {"total": 1720.75})],
    "Your three pensions add up to 1720.75 EUR a month.",
]
LABEL = (
    "bad data",
    "the model adds the three pensions to 1720.75; they are 1820.75",
    "response 2",
    "call save_plan 1",
)

if __name__ == "__main__":
    print(
        Agent(pension, save_plan).run(
            "What do my state, company and private pensions add up to? Save it as my plan."
        )
    )
