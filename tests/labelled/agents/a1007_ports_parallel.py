"""Three readings in parallel that end in another order and are matched by their ids."""

import asyncio

from kit import Gathered

TIDE = {"Brest": (0.05, 6.1), "Cherbourg": (0.03, 5.2), "Calais": (0.01, 6.8)}


async def tide(port: str) -> dict:
    wait, metres = TIDE[port]
    await asyncio.sleep(wait)
    return {"port": port, "high_water_m": metres}


async def notify(pilot: str, text: str) -> str:
    return "delivered"


MODEL = [
    [("tide", {"port": "Brest"}), ("tide", {"port": "Cherbourg"}), ("tide", {"port": "Calais"})],
    ("notify", {"pilot": "lemaire", "text": "High water: Brest 6.1 m, Cherbourg 5.2 m, Calais 6.8 m."}),
    "I sent the tides to lemaire: Brest 6.1 m, Cherbourg 5.2 m, Calais 6.8 m.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Gathered(tide, notify).run("Send pilot lemaire today's high water at Brest, Cherbourg and Calais."))
