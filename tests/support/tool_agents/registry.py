import functools

from agent_loop import conversation

REGISTRY = {}


def tool(function):
    @functools.wraps(function)
    def logged(*args, **kwargs):
        print("begins", function.__name__)
        return function(*args, **kwargs)

    REGISTRY[function.__name__] = logged
    return logged


@tool
def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


@tool
def book(hotel):
    try:
        return {}[hotel]
    except KeyError as exc:
        raise ConnectionError(f"no route to {hotel}") from exc


conversation(lambda name, args: REGISTRY[name](**args))
