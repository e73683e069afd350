from agent_loop import conversation

HANDLERS = {
    "lookup": lambda city, days: {"city": city, "rooms": 3 * days},
    "book": lambda hotel: {}[hotel],
}
conversation(lambda name, args: HANDLERS[name](**args))
