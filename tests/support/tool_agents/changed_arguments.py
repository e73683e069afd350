from agent_loop import conversation


def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


def book(hotel):
    raise ConnectionError(f"no route to {hotel}")


HANDLERS = {"lookup": lookup, "book": book}


def run(name, args):
    changed = {key: value.lower() if isinstance(value, str) else value for key, value in args.items()}
    return HANDLERS[name](**changed)


conversation(run)
