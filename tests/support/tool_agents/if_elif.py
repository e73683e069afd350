from agent_loop import conversation


def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


def book(hotel):
    raise ConnectionError(f"no route to {hotel}")


def run(name, args):
    if name == "lookup":
        return lookup(args["city"], args["days"])
    elif name == "book":
        return book(args["hotel"])
    return None


conversation(run)
