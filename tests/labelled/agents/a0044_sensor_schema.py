"""A field agent reads soil moisture; a new firmware sends a list where a number was."""

from kit import Agent


def moisture(plot: int) -> dict:
    if plot == 3:
        return {"plot": plot, "moisture": [{"depth_cm": 10, "pct": 31}, {"depth_cm": 40, "pct": 44}]}
    return {"plot": plot, "moisture": {1: 18, 2: 22}[plot]}


def irrigate(plot: int, minutes: int) -> str:
    return f"plot {plot}: {minutes} min"


class Averages(Agent):
    def text(self, value):
        if isinstance(value, dict) and "moisture" in value:
            seen = value["moisture"]
            return f"plot {value['plot']}: {seen if isinstance(seen, int) else len(seen)} %"  # a list has a length
        return super().text(value)


MODEL = [
    [("moisture", {"plot": 1}), ("moisture", {"plot": 2}), ("moisture", {"plot": 3})],
    [
        "Plot 3 is almost dry with 2 %, the others are below 25 % too.",
        ("irrigate", {"plot": 1, "minutes": 20}),
        ("irrigate", {"plot": 2, "minutes": 10}),
        ("irrigate", {"plot": 3, "minutes": 90}),
    ],
    "Irrigation: plot 1 20 min, plot 2 10 min, plot 3 90 min, because it was almost dry.",
]
LABEL = (
    "schema mismatch",
    "plot 3 reports a list of depths, of which the loop sends the length as a percentage",
    "result moisture 3",
    "sent moisture 3",
)

if __name__ == "__main__":
    print(Averages(moisture, irrigate, wire="messages").run("Irrigate plots 1 to 3 up to 30 %."))
