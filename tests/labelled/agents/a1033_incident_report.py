"""An agent writes about an outage: its texts are full of errors, its own work is not."""

from kit import Agent

EVENTS = [
    "09:12 api: Traceback (most recent call last): KeyError: 'tenant'",
    "09:13 api: 500 Internal Server Error (x 812)",
    "09:40 deploy: rollback to 6.0.9, errors: 0",
]


def timeline(incident: str) -> list:
    return EVENTS


def publish(title: str, text: str) -> dict:
    return {"url": "status.example/i/77", "error": None, "warnings": []}


MODEL = [
    ("timeline", {"incident": "INC-77"}),
    (
        "publish",
        {
            "title": "Outage of 9:12",
            "text": "A KeyError made 812 requests fail with 500. Rolled back at 9:40.",
        },
    ),
    "The report on INC-77 is published at status.example/i/77.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(timeline, publish).run("Write and publish the report on INC-77."))
