from agent_loop import conversation


def main():
    factor = 3

    def lookup(city, days):
        return {"city": city, "rooms": factor * days}

    def book(hotel):
        raise ConnectionError(f"no route to {hotel}")

    handlers = {"lookup": lookup, "book": book}
    conversation(lambda name, args: handlers[name](**args))


main()
main()
