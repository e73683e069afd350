import asyncio

from agent_loop import conversation


async def lookup(city, days):
    await asyncio.sleep(0)
    return {"city": city, "rooms": 3 * days}


async def book(hotel):
    await asyncio.sleep(0)
    raise ConnectionError(f"no route to {hotel}")


HANDLERS = {"lookup": lookup, "book": book}
conversation(lambda name, args: asyncio.run(HANDLERS[name](**args)))
