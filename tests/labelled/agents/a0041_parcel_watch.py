"""A parcel agent polls two shipments in turn; one of them is never scanned again."""

from kit import Agent

SCANS = {"DX1": iter(["in transit", "in transit", "out for delivery", "delivered"])}


def track(parcel: str) -> dict:
    return {
        "parcel": parcel,
        "state": next(SCANS[parcel], "delivered") if parcel in SCANS else "label created",
    }


def wait(minutes: int) -> str:
    return f"{minutes} minutes later"


class Bounded(Agent):
    def gave_up(self):
        return "I am still watching your parcels."


MODEL = [
    *[[("track", {"parcel": "DX1"}), ("track", {"parcel": "DX2"})]] * 4,
    *[("wait", {"minutes": 60}), ("track", {"parcel": "DX2"})] * 8,
]
LABEL = (
    "endless polling",
    "DX2 was never handed in; the agent polls the same state until its turns are used up",
    *[f"result track {n}" for n in range(4, 17) if n not in (5, 7)],
    *[f"call track {n}" for n in range(4, 17) if n not in (5, 7)],
)

if __name__ == "__main__":
    print(Bounded(track, wait, turns=20).run("Tell me when DX1 and DX2 are both delivered."))
