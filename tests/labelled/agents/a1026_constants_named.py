"""All ids come from the user; the model repeats them in another form."""

from kit import Agent


def merge_contacts(keep: int, drop: int) -> dict:
    return {"kept": keep, "dropped": drop, "fields_moved": 7}


def audit_entry(text: str) -> str:
    return "logged"


MODEL = [
    ("merge_contacts", {"keep": 90017, "drop": 90233}),
    ("audit_entry", {"text": "90233 merged into 90017 at the request of s.weber (ticket CRM-555)"}),
    "Contact 90233 is merged into 90017; seven fields were moved. Logged for CRM-555.",
]
LABEL = "passes"

if __name__ == "__main__":
    agent = Agent(merge_contacts, audit_entry, system="The current user is s.weber.")
    print(agent.run("CRM-555: merge contact #90233 into #90017 and log it."))
