from agent_loop import conversation


def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


def book(hotel):
    raise ConnectionError(f"no route to {hotel}")


HANDLERS = {"lookup": lookup, "book": book}

conversation(lambda name, args: HANDLERS[name](**args))
