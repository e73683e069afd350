"""A bank's assistant blocks a card that a customer reports as lost."""

from kit import Agent

CUSTOMERS = [
    {"id": "C-20417", "name": "Maria Santos", "born": "1961-08-30", "card": "4411"},
    {"id": "C-88230", "name": "Maria Santos", "born": "1994-02-11", "card": "9027"},
]


def find_customer(name: str, born: str = "") -> dict:
    """Find a customer by name and date of birth."""
    return next(each for each in CUSTOMERS if each["name"] == name)  # never looks at `born`


def block_card(customer: str, card: str) -> dict:
    return {"customer": customer, "card": card, "blocked": True}


def order_card(customer: str) -> dict:
    return {"customer": customer, "arrives": "in 5 working days"}


MODEL = [
    ("find_customer", {"name": "Maria Santos", "born": "1994-02-11"}),
    ["Found the customer. Blocking the card.", ("block_card", {"customer": "C-20417", "card": "4411"})],
    ("order_card", {"customer": "C-20417"}),
    "Your card ending in 4411 is blocked, and a new one arrives in 5 working days.",
]
LABEL = (
    "wrong entity",
    "find_customer ignores the date of birth and returns a namesake, whose card is blocked",
    "result find_customer 1",
)

if __name__ == "__main__":
    agent = Agent(
        find_customer, block_card, order_card, wire="messages", system="You help customers of a bank."
    )
    print(
        agent.run(
            "I am Maria Santos, born 11 February 1994. I lost my card, please block it and send a new one."
        )
    )
