"""The model calls a tool that this deployment does not have."""

from kit import Agent


def search_products(query: str) -> list:
    return [{"sku": "LMP-4", "name": "Desk lamp, brass", "eur": 79}]


class Strict(Agent):
    def attempt(self, call):
        return self.text(self.tools[call.name](**call.args))


MODEL = [
    ("search_products", {"query": "brass desk lamp"}),
    ("add_to_cart", {"sku": "LMP-4", "quantity": 1}),
]
LABEL = ("malformed arguments", "the model calls add_to_cart, which does not exist", "response 2")

if __name__ == "__main__":
    system = "Help the customer. You can use search_products and add_to_cart."
    print(Strict(search_products, wire="messages", system=system).run("Put a brass desk lamp into my cart."))
