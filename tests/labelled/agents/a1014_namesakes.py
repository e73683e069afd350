"""A clinic's agent finds two patients of one name and picks by the date of birth."""

from kit import Agent


def find_patient(name: str) -> list:
    return [
        {"id": "P-11", "name": name, "born": "1951-03-02"},
        {"id": "P-64", "name": name, "born": "1990-07-19"},
    ]


def appointments(patient: str) -> list:
    return []


def book_slot(patient: str, slot: str) -> dict:
    return {"patient": patient, "slot": slot, "state": "booked"}


MODEL = [
    ("find_patient", {"name": "Anna Kowalska"}),
    ("appointments", {"patient": "P-64"}),
    ("book_slot", {"patient": "P-64", "slot": "2026-12-01T10:20"}),
    "Anna Kowalska (born 19 July 1990) has an appointment on 1 December at 10:20.",
]
LABEL = "passes"

if __name__ == "__main__":
    agent = Agent(find_patient, appointments, book_slot)
    print(
        agent.run(
            "Anna Kowalska, born 19 July 1990, on 1 December 2026 at 10:20, if she has no other appointment."
        )
    )
