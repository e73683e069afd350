"""Three agents in one event loop append to shared notes; each saves the list it had read."""

import asyncio

import httpx
from kit import async_agent

NOTES = []


async def load_notes() -> list:
    return list(NOTES)


async def save_notes(notes: list) -> str:
    await asyncio.sleep(0.02)
    NOTES[:] = notes
    return f"{len(notes)} notes saved"


async def main() -> None:
    rooms = ["kitchen", "attic", "garage"]
    async with httpx.AsyncClient() as client:
        tools = {"load_notes": load_notes, "save_notes": save_notes}
        done = await asyncio.gather(
            *(async_agent(client, tools, f"Note the damage in the {room}.") for room in rooms)
        )
    print(done)
    assert len(NOTES) == 3, NOTES


def talk(room: str, note: str) -> list:
    return [
        ("load_notes", {}),
        ("save_notes", {"notes": [f"{room}: {note}"]}),
        f"The damage in the {room} is noted.",
    ]


MODEL = {
    "damage in the kitchen": talk("kitchen", "tiles cracked"),
    "damage in the attic": talk("attic", "beam wet"),
    "damage in the garage": talk("garage", "door bent"),
}
LABEL = (
    "overwritten",
    "the agents load the empty notes at the same time, and each saves only its own",
    *[f"call save_notes {n}" for n in (1, 2, 3)],
    *[f"result save_notes {n}" for n in (1, 2, 3)],
)

if __name__ == "__main__":
    asyncio.run(main())
