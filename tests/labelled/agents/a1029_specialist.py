"""A nurse asks a pharmacist agent and passes its warning on."""

from kit import Agent


def drug_interactions(a: str, b: str) -> str:
    return "no interaction on record"


def ask_pharmacist(question: str) -> str:
    return Agent(drug_interactions, system="You are a pharmacist.").run(question)


MODEL = {
    "You are a pharmacist": [
        ("drug_interactions", {"a": "amoxicillin", "b": "cetirizine"}),
        "They can be combined. Cetirizine may cause drowsiness.",
    ],
    "You are a triage nurse": [
        ("ask_pharmacist", {"question": "Can amoxicillin and cetirizine be combined?"}),
        "Yes, you can take both. Cetirizine may make you drowsy, so do not drive.",
    ],
}
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(ask_pharmacist, system="You are a triage nurse.").run(
            "I take amoxicillin. May I take cetirizine for my hay fever?"
        )
    )
