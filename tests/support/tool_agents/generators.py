from agent_loop import conversation


def lookup(city, days):
    for day in range(days):
        yield {"city": city, "rooms": 3, "day": day}
    return days


def book(hotel):
    yield "searching"
    raise ConnectionError(f"no route to {hotel}")


HANDLERS = {"lookup": lookup, "book": book}
conversation(lambda name, args: list(HANDLERS[name](**args)))
