import sys

from agent_loop import conversation


def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


def book(hotel):
    raise ConnectionError(f"no route to {hotel}")


conversation(lambda name, args: getattr(sys.modules[__name__], name)(**args))
