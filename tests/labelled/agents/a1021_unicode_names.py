"""A registrar keeps names in several scripts as they are."""

from kit import Agent

PEOPLE = {1: "Łukasz Żółć", 2: "Nguyễn Thị Hương", 3: "مريم الهاشمي", 4: "李小龍", 5: "Zoë O’Brien"}


def person(number: int) -> dict:
    return {"number": number, "name": PEOPLE[number]}


def badge(name: str) -> str:
    return f"badge printed: {name}"


MODEL = [
    [("person", {"number": number}) for number in PEOPLE],
    [("badge", {"name": name}) for name in PEOPLE.values()],
    "Five badges are printed: Łukasz Żółć, Nguyễn Thị Hương, مريم الهاشمي, 李小龍, Zoë O’Brien.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(person, badge, wire="openai").run("Print the badges of guests 1 to 5."))
