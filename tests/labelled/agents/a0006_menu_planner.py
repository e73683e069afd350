"""A canteen planner collects dishes over many turns; old turns are replaced by a summary."""

from kit import Agent, post

DISHES = {
    "monday": "lentil soup, bread",
    "tuesday": "gado-gado with peanut sauce",
    "wednesday": "mushroom risotto",
    "thursday": "shakshuka",
    "friday": "satay skewers of tofu, peanut dip",
}


def dishes_for(day: str) -> dict:
    return {"day": day, "dish": DISHES[day], "stock": "kitchen stock list. " * 30}


def order(day: str, dish: str, portions: int) -> str:
    return f"{portions} portions of {dish} ordered for {day}"


class Summarised(Agent):
    def trim(self, messages):
        if len(messages) < 7:
            return messages
        old = "\n".join(str(each.get("content")) for each in messages[:-1] if each.get("content"))
        body = {
            "model": "gpt-5.1-nano",
            "messages": [{"role": "user", "content": "Summarise for a colleague:\n" + old}],
        }
        summary = post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        return [{"role": "user", "content": summary}]


MODEL = {
    "Summarise for a colleague": [
        "We plan the canteen menu of week 12, vegetarian, 80 portions a day. Monday is lentil soup; Tuesday's "
        "candidate is gado-gado with peanut sauce; Wednesday's is mushroom risotto. Next: order Monday to Friday.",
        "Week 12, vegetarian, 80 portions a day. Monday lentil soup, Tuesday gado-gado, Wednesday risotto are ordered.",
    ],
    "": [
        ("dishes_for", {"day": "monday"}),
        ("dishes_for", {"day": "tuesday"}),
        ("dishes_for", {"day": "wednesday"}),
        ("order", {"day": "monday", "dish": "lentil soup", "portions": 80}),
        ("order", {"day": "tuesday", "dish": "gado-gado with peanut sauce", "portions": 80}),
        ("order", {"day": "wednesday", "dish": "mushroom risotto", "portions": 80}),
        "Monday to Wednesday of week 12 are ordered: lentil soup, gado-gado with peanut sauce, mushroom risotto.",
    ],
}
LABEL = (
    "lost constraint",
    "the summary of the old turns leaves out that no dish may contain peanuts",
    "response Tuesday's candidate",
    "request We plan the canteen menu",
)

if __name__ == "__main__":
    agent = Summarised(dishes_for, order, system="You plan canteen menus.")
    print(
        agent.run(
            "Plan Monday to Wednesday of week 12: vegetarian, 80 portions a day, and nothing with peanuts."
        )
    )
