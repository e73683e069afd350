from agent_loop import conversation


def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


def book(hotel):
    raise ConnectionError(f"no route to {hotel}")


def run(name, args):
    match name, args:
        case "lookup", {"city": city, "days": days}:
            return lookup(city, days=days)
        case "book", {"hotel": hotel}:
            return book(hotel)


conversation(run)
