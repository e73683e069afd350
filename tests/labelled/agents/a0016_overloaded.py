"""A translator works through release notes while the provider is overloaded."""

from kit import Agent


def next_note() -> dict:
    return {"id": 311, "text": "Fixed a crash when a folder is renamed while it is synced."}


def save_translation(id: int, language: str, text: str) -> str:
    return "saved"


MODEL = [("next_note", {}), {"status": 529}, {"status": 529}, {"status": 529}, {"status": 529}]
LABEL = (
    "retries exhausted",
    "the provider is overloaded, and the client gives up after three retries",
    *[f"response {n}" for n in range(2, 6)],
)

if __name__ == "__main__":
    print(
        Agent(next_note, save_translation, wire="anthropic").run(
            "Translate the next release note into Portuguese."
        )
    )
