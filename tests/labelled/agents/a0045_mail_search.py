"""A paralegal agent looks for all mails on a project; the search returns the ten best only."""

from kit import Agent

HITS = [{"mail": 4000 + n, "subject": f"Harbour project, part {n}"} for n in range(1, 58)]


def search_mail(query: str, limit: int = 10) -> dict:
    return {"hits": HITS[:limit], "total": len(HITS)}


def export(mails: list, file: str) -> str:
    return f"{len(mails)} mails in {file}"


MODEL = [
    ("search_mail", {"query": "Harbour project"}),
    [
        "Exporting all mails that were found.",
        ("export", {"mails": [4000 + n for n in range(1, 11)], "file": "harbour.zip"}),
    ],
    "All mails on the harbour project are in harbour.zip (10 mails).",
]
LABEL = (
    "partial page",
    "the search has 57 hits and returns ten, which the model takes as all",
    "result search_mail 1",
    "response 2",
    "call export 1",
)

if __name__ == "__main__":
    print(
        Agent(search_mail, export, wire="openai").run(
            "Export every mail on the harbour project for the court."
        )
    )
