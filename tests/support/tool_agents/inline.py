from agent_loop import conversation


def run(name, args):
    if name == "lookup":
        return {"city": args["city"], "rooms": 3 * args["days"]}
    raise ConnectionError(f"no route to {args['hotel']}")


conversation(run)
