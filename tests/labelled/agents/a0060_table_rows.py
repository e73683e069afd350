"""An analyst's tool output is limited to some rows, without a mark that more exist."""

from kit import Agent

ROWS = [("2026-01", 120), ("2026-02", 131), ("2026-03", 128), ("2026-04", 640), ("2026-05", 655)]


def monthly_signups() -> list:
    return [{"month": month, "signups": count} for month, count in ROWS]


class FirstRows(Agent):
    def text(self, value):
        return super().text(value[:3] if isinstance(value, list) else value)


MODEL = [
    ("monthly_signups", {}),
    "Signups are flat this year: between 120 and 131 a month. The campaign of April had no effect.",
]
LABEL = (
    "cut result",
    "the loop keeps three of five rows, and the months after the campaign are missing",
    "sent monthly_signups 1",
    "result monthly_signups 1",
)

if __name__ == "__main__":
    print(
        FirstRows(monthly_signups, wire="messages").run("Did the campaign of April 2026 change our signups?")
    )
