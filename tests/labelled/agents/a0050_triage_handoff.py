"""A triage agent hands a case to a specialist, whose answer does not come back."""

from kit import Agent


def drug_interactions(a: str, b: str) -> str:
    return "warfarin + ibuprofen: severe, bleeding risk. Avoid."


def ask_pharmacist(question: str) -> str:
    answer = Agent(drug_interactions, system="You are a pharmacist.").run(question)
    return f"Consulted the pharmacist ({len(answer)} characters)."  # the answer itself was meant


MODEL = {
    "You are a pharmacist": [
        ("drug_interactions", {"a": "warfarin", "b": "ibuprofen"}),
        "Do not combine them: ibuprofen raises the risk of bleeding under warfarin. Suggest paracetamol.",
    ],
    "You are a triage nurse": [
        ("ask_pharmacist", {"question": "May a patient on warfarin take ibuprofen for back pain?"}),
        "The pharmacist was consulted and has no objection. You can take ibuprofen with food.",
    ],
}
LABEL = (
    "dropped sub-agent",
    "ask_pharmacist returns a remark instead of the pharmacist's answer",
    "result ask_pharmacist 1",
    "response has no objection",
)

if __name__ == "__main__":
    agent = Agent(ask_pharmacist, system="You are a triage nurse.")
    print(agent.run("I take warfarin. Is ibuprofen fine for my back?"))
