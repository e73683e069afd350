"""The model's first JSON is not valid; the loop returns the parser's message and gets a valid one."""

import json

from kit import Agent


def menu(day: str) -> str:
    return "Soup of the day 4.50; Bacalhau 12.00; Pastel de nata 1.40"


class Parsed(Agent):
    def finish(self, reply):
        try:
            return json.loads(reply.text)
        except ValueError as error:
            return self.run(f"That is not valid JSON ({error}). Answer with the JSON only.")


MODEL = [
    ("menu", {"day": "friday"}),
    "Here you are: {'soup': 4.5, 'bacalhau': 12, 'nata': 1.4}",
    '{"soup": 4.5, "bacalhau": 12.0, "nata": 1.4}',
]
LABEL = "passes"

if __name__ == "__main__":
    prices = Parsed(menu).run("The prices of Friday's menu as JSON.")
    assert prices == {"soup": 4.5, "bacalhau": 12.0, "nata": 1.4}, prices
