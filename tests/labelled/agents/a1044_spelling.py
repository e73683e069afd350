"""The user misspells a name; the agent finds the right one and says so."""

from kit import Agent


def find_street(name: str, city: str) -> list:
    return (
        [] if name == "Rua Agusta" else [{"street": "Rua Augusta", "city": "Lisboa", "postcode": "1100-048"}]
    )


def suggest(name: str, city: str) -> list:
    return ["Rua Augusta", "Rua da Augusta"]


MODEL = [
    ("find_street", {"name": "Rua Agusta", "city": "Lisboa"}),
    ("suggest", {"name": "Rua Agusta", "city": "Lisboa"}),
    ("find_street", {"name": "Rua Augusta", "city": "Lisboa"}),
    "You probably mean Rua Augusta in Lisbon; its postcode is 1100-048.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(find_street, suggest, wire="messages").run("What is the postcode of Rua Agusta in Lisboa?"))
