"""A shipping agent prints an address label."""

from kit import Agent


def order_address(order: int) -> str:
    return "Jürgen Müßig\nKönigsstraße 14\n90402 Nürnberg".encode().decode("latin-1")


def print_label(text: str) -> str:
    return "label printed"


MODEL = [
    ("order_address", {"order": 55121}),
    ("print_label", {"text": "JÃ¼rgen MÃ¼Ãig\nKÃ¶nigsstraÃe 14\n90402 NÃ¼rnberg"}),
    "The label for order 55121 is printed.",
]
LABEL = (
    "encoding",
    "order_address decodes UTF-8 as Latin-1, so that the label cannot be read",
    "result order_address 1",
)

if __name__ == "__main__":
    print(Agent(order_address, print_label).run("Print the label of order 55121."))
