"""A writer and a critic correct each other without an end; the history grows with every round."""

from kit import Agent

LIMIT = 14


class Critic(Agent):
    def __init__(self):
        super().__init__(system="You are a strict critic. Say OK if nothing is left to improve.")


def main() -> str:
    writer = Agent(system="You write slogans.")
    draft = writer.run("A slogan for a bakery.")
    for _ in range(LIMIT):
        verdict = Critic().run(f"Judge this slogan: {draft}")
        if verdict == "OK":
            return draft
        draft = writer.run(f"The critic says: {verdict} Write it again.")
    raise SystemExit("budget of 30 model calls exceeded")


MODEL = {
    "strict critic": ["Too plain.", "Too clever."] * 7,
    "You write slogans": ["Bread, baked well.", *["Our dough has get up and go.", "Bread, baked well."] * 7],
}
LABEL = (
    "cost in a loop",
    "writer and critic alternate between two versions until the budget is used up",
    *[f"response {n}" for n in range(4, 30)],
    *[f"request {n}" for n in range(4, 30)],
)

if __name__ == "__main__":
    print(main())
