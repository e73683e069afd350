from agent_loop import conversation


class Agency:
    def __init__(self, rooms):
        self.rooms = rooms

    def lookup(self, city, days):
        return {"city": city, "rooms": self.rooms * days}

    @staticmethod
    def book(hotel):
        raise ConnectionError(f"no route to {hotel}")


agency = Agency(3)
conversation(lambda name, args: getattr(agency, name)(**args))
