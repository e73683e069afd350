"""A support bot whose prompt is built from a record with an empty field."""

from kit import Agent


def order_status(order: str) -> dict:
    return {"order": order, "state": "shipped"}


RECORD = {"name": "Priya", "order": None, "tier": "gold"}
MODEL = [
    ("order_status", {"order": "None"}),
    "Hello Priya, your order None has been shipped.",
]
LABEL = (
    "unfilled placeholder",
    "the prompt says 'order None', because the record has no order number",
    "request 1",
    "call order_status 1",
)

if __name__ == "__main__":
    system = f"The customer is {RECORD['name']} ({RECORD['tier']}). The current order is {RECORD['order']}."
    print(Agent(order_status, system=system).run("Where is my order?"))
