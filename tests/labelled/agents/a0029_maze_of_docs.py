"""A support agent follows links between documents and ends at its limit of turns."""

from kit import Agent

LINKS = {"setup": "network", "network": "proxy", "proxy": "certificates", "certificates": "setup"}


def open_page(name: str) -> str:
    return f"{name.title()}. Before you begin, read the page '{LINKS[name]}'."


class Patient(Agent):
    def gave_up(self):
        return ""


ORDER = ["setup", "network", "proxy", "certificates"] * 3
MODEL = [("open_page", {"name": name}) for name in ORDER]
LABEL = (
    "turn limit",
    "the pages refer to each other in a circle; the agent ends at its limit of turns without an answer",
    *[f"call open_page {n}" for n in range(5, 13)],
    *[f"result open_page {n}" for n in range(4, 13)],
)

if __name__ == "__main__":
    print(Patient(open_page, turns=12).run("How do I install the client behind a proxy?"))
