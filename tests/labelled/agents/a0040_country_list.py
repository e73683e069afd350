"""A compliance agent lists countries; its answer is cut by the limit, and the list goes on to a tool."""

from kit import Agent

MARKETS = "AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE".split()


def markets(region: str) -> list:
    return MARKETS


def enable(countries: list) -> str:
    return f"{len(countries)} countries enabled"


MODEL = [
    ("markets", {"region": "EU"}),
    {"text": "AT, BE, BG, HR, CY, CZ, DK, EE, FI, FR, DE, GR, HU, IE, IT, LV, LT, L", "stop": "length"},
]
LABEL = (
    "output limit",
    "the list of countries ends at the token limit, and the rest is never enabled",
    "response 2",
    "request 2",
)

if __name__ == "__main__":
    agent = Agent(markets, limit=48, system="Answer with country codes, separated by commas.")
    codes = agent.run("Which countries of the EU do we sell to?").split(", ")
    print(enable(countries=codes))
