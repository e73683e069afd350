"""Three inspectors in one event loop, each with its own part of the notes."""

import asyncio

import httpx
from kit import async_agent

NOTES = {}


async def look(room: str) -> str:
    await asyncio.sleep(0.01)
    return {"cellar": "damp wall", "stairs": "loose rail", "roof": "two tiles missing"}[room]


async def note(room: str, text: str) -> str:
    NOTES[room] = text
    return "noted"


async def main() -> None:
    async with httpx.AsyncClient() as client:
        jobs = [
            async_agent(client, {"look": look, "note": note}, f"Inspect the {room}.")
            for room in ("cellar", "stairs", "roof")
        ]
        print(await asyncio.gather(*jobs))
    assert len(NOTES) == 3, NOTES


def talk(room: str, text: str) -> list:
    return [("look", {"room": room}), ("note", {"room": room, "text": text}), f"{room}: {text}."]


MODEL = {
    "Inspect the cellar": talk("cellar", "damp wall"),
    "Inspect the stairs": talk("stairs", "loose rail"),
    "Inspect the roof": talk("roof", "two tiles missing"),
}
LABEL = "passes"

if __name__ == "__main__":
    asyncio.run(main())
