from dataclasses import dataclass

from agent_loop import conversation


@dataclass
class Stay:
    city: str
    days: int
    guests: int = 1


@dataclass
class Booking:
    hotel: str


def lookup(stay: Stay):
    return {"city": stay.city, "rooms": 3 * stay.days}


def book(booking: Booking):
    raise ConnectionError(f"no route to {booking.hotel}")


HANDLERS = {"lookup": (lookup, Stay), "book": (book, Booking)}


def run(name, args):
    function, kind = HANDLERS[name]
    return function(kind(**args))


conversation(run)
