from functools import partial

from agent_loop import conversation


def rooms(factor, city, days):
    return {"city": city, "rooms": factor * days}


def reserve(hotel, channel=None):
    raise ConnectionError(f"no route to {hotel} by {channel}")


HANDLERS = {"lookup": partial(rooms, 3), "book": partial(reserve, channel="post")}
conversation(lambda name, args: HANDLERS[name](**args))
