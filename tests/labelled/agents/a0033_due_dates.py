"""A collections agent decides which invoices are overdue, with a date in its prompt that a cron job forgot to renew."""

from kit import Agent

TODAY = "2026-10-01"  # written at deployment


def invoices(customer: str) -> list:
    return [
        {"invoice": "R-881", "due": "2026-10-28", "eur": 940.0},
        {"invoice": "R-902", "due": "2026-12-05", "eur": 120.0},
    ]


def remind(invoice: str) -> str:
    return "reminder sent"


def server_time() -> str:
    return "2026-11-16T08:00:00Z"


MODEL = [
    [("invoices", {"customer": "Hartwell"}), ("server_time", {})],
    "Neither R-881 (due 28 October) nor R-902 (due 5 December) is overdue. No reminder is needed.",
]
LABEL = (
    "stale prompt",
    "the system prompt names a date that is six weeks old, so an overdue invoice is not seen",
    "request 1",
    "response 2",
)

if __name__ == "__main__":
    agent = Agent(
        invoices, remind, server_time, system=f"Today is {TODAY}. You send reminders for overdue invoices."
    )
    print(agent.run("Remind Hartwell of what is overdue."))
