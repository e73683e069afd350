"""A classifier copies the answer of an example in its prompt."""

from kit import Agent

EXAMPLES = """Examples:
Ticket: "The invoice has the wrong VAT id." -> route(team="billing", urgency="low")
Ticket: "Invoice 8812 is charged twice." -> route(team="billing", urgency="low")
Ticket: "I cannot download my invoice." -> route(team="billing", urgency="low")
"""


def route(team: str, urgency: str) -> str:
    return f"routed to {team}, {urgency}"


MODEL = [("route", {"team": "billing", "urgency": "low"}), "The ticket is with the billing team."]
LABEL = (
    "stale prompt",
    "all examples in the prompt are of the billing team, and the model routes a leak of data there",
    "request 1",
    "call route 1",
)

if __name__ == "__main__":
    agent = Agent(route, system="Route tickets to billing, security or product.\n" + EXAMPLES)
    print(
        agent.run(
            "Ticket: I downloaded my invoice and got the invoice of a stranger, with address and bank account."
        )
    )
