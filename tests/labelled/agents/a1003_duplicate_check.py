"""A registrar looks for duplicates, finds none, and files the record."""

from kit import Agent


def search_records(surname: str, born: str) -> list:
    return []


def file_record(surname: str, given: str, born: str) -> dict:
    return {"record": "R-2026-0931", "surname": surname, "given": given, "born": born}


MODEL = [
    ("search_records", {"surname": "Oyelaran", "born": "1988-12-01"}),
    [
        "No record exists yet, as expected for a new resident. Filing it.",
        ("file_record", {"surname": "Oyelaran", "given": "Tunde", "born": "1988-12-01"}),
    ],
    "Tunde Oyelaran is registered under R-2026-0931.",
]
LABEL = "passes"

if __name__ == "__main__":
    agent = Agent(search_records, file_record, wire="openai", system="File a record only if none exists.")
    print(agent.run("Register Tunde Oyelaran, born 1 December 1988, new in town."))
