from agent_loop import conversation


def book(hotel):
    with open("booked.txt", "a") as file:
        file.write(f"{hotel}\n")
    raise ConnectionError(f"no route to {hotel}")


def lookup(city, days):
    plan = [["book", {"hotel": f"{city} {day}"}] for day in range(days)]
    conversation(run, [plan, [["book", {"hotel": "Opera"}]]])
    return {"city": city, "rooms": 3 * days}


def run(name, args):
    return {"lookup": lookup, "book": book}[name](**args)


conversation(run, [[["lookup", {"city": "Oslo", "days": 2}]], [["lookup", {"city": "Rome", "days": 1}]]])
