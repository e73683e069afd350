"""A marketing agent buys keyword estimates, each of which costs money, and finds no end."""

from kit import Agent

SPENT = {"eur": 0.0}


def estimate(keyword: str) -> dict:
    """Estimate the reach of a keyword (0.40 EUR per estimate)."""
    SPENT["eur"] += 0.4
    if SPENT["eur"] > 10:
        raise SystemExit("the day's budget of 10 EUR is used up")
    return {"keyword": keyword, "reach": 900 + 13 * len(keyword), "spent_eur": round(SPENT["eur"], 2)}


def save_plan(keywords: list) -> str:
    return "saved"


WORDS = ["tea", "green tea", "matcha", "matcha tea", "best matcha", "matcha powder", "ceremonial matcha"]
MODEL = [
    [f"{word} may do better than the last one.", ("estimate", {"keyword": word})] for word in (WORDS * 4)[:25]
]
LABEL = (
    "cost in a loop",
    "the agent pays for the same estimates again and again until the budget is used up",
    *[f"call estimate {n}" for n in range(8, 26)],
    *[f"result estimate {n}" for n in range(8, 25)],
)

if __name__ == "__main__":
    print(Agent(estimate, save_plan).run("Find the best five keywords for our tea shop."))
