"""A gardener reads a sensor before and after watering: the same call, another result."""

from kit import Agent

READINGS = iter([14, 38])


def soil(bed: int) -> dict:
    return {"bed": bed, "moisture_pct": next(READINGS)}


def water(bed: int, litres: int) -> str:
    return f"bed {bed}: {litres} l"


MODEL = [
    ("soil", {"bed": 2}),
    ("water", {"bed": 2, "litres": 12}),
    ("soil", {"bed": 2}),
    "Bed 2 was at 14 %. After 12 litres it is at 38 %.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(soil, water, wire="messages").run("Water bed 2 until it is above 30 %, 12 litres at a time."))
