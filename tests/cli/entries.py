"""The code that test_cli_replay_entry records and replays."""

PLANNER = """
import dataclasses, datetime, os, uuid
import pydantic, reenact

tap = reenact.Tap()

@dataclasses.dataclass
class Trip:
    city: str
    day: datetime.date
    stops: tuple[str, ...] = ()

class Price(pydantic.BaseModel):
    amount: int
    unit: str

def client(kind):
    import anthropic
    return getattr(anthropic, kind)(base_url=os.environ["MODEL_URL"])

def asked(text):
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}

@tap.tool
def price(stops: int) -> Price:
    print("asked for a price")
    return Price(amount=stops * 10, unit="EUR")

@tap.tool
def pair(n: int) -> tuple[int, set[str]]:
    print("asked for a pair")
    return n, {"a", "b"}

@reenact.run
def plan(trip: Trip, key: uuid.UUID, *more: int, strict: bool = False, **rest: int):
    said = client("Anthropic").messages.create(**asked(f"{trip} {key}"))
    cost, found = price(len(trip.stops)), pair(3)
    if strict:
        raise LookupError(f"no room in {trip.city}")
    return {"said": said.content[0].text, "day": str(trip.day), "stops": repr(trip.stops), "key": key.int,
            "cost": cost.amount, "pair": repr((found[0], sorted(found[1]))), "more": more, "rest": rest}

@reenact.run
async def later(city: str):
    return (await client("AsyncAnthropic").messages.create(**asked(city))).content[0].text

@reenact.run
async def words(city: str):
    for word in (await client("AsyncAnthropic").messages.create(**asked(city))).content[0].text.split():
        yield word

@reenact.run
def secretly(api_key: str, thing: object):
    return repr(thing)[:15]

class Agent:
    @reenact.run("method")
    def act(self): ...

    @classmethod
    @reenact.run("of-class")
    def make(cls, n: int):
        return f"{cls.__name__} {n}"

def maker():
    @reenact.run("inner")
    def inner(): ...
    return inner
"""
SHOP = """
import os, anthropic
from contextlib import asynccontextmanager
from fastapi import FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware
from pydantic import BaseModel

@asynccontextmanager
async def lifespan(app):
    app.state.client = anthropic.AsyncAnthropic(base_url=os.environ["MODEL_URL"])
    yield

shop = FastAPI(lifespan=lifespan)

class Order(BaseModel):
    item: str
    count: int

@shop.post("/orders/{customer}")
async def order(customer: str, order: Order, dry: bool = False):
    ask = [{"role": "user", "content": f"{customer}, {order.item}, {dry}"}]
    said = await shop.state.client.messages.create(model="m", max_tokens=9, messages=ask)
    return {"each": 100 / order.count, "said": said.content[0].text}

@shop.post("/form")
async def form(request: Request):
    ask = [{"role": "user", "content": (await request.form())["name"]}]
    return (await shop.state.client.messages.create(model="m", max_tokens=9, messages=ask)).id

app = GZipMiddleware(shop)
"""
RECORD = """
import asyncio, datetime, uuid, httpx
import planner, reenact, shop
from planner import Agent, Trip

@reenact.run
def in_the_script(n: int):
    print("in the script", n)
    return n + 1

async def requests():
    await planner.later("Faro")
    [word async for word in planner.words("Faro")]
    async with shop.lifespan(shop.shop), httpx.AsyncClient(
        transport=httpx.ASGITransport(shop.app, raise_app_exceptions=False), base_url="http://shop"
    ) as client:
        for count in (2, 0):
            headers = {"authorization": "Bearer x"} if count else {}
            await client.post("/orders/ann?dry=1", json={"item": "tea", "count": count}, headers=headers)
        await client.post("/form", files={"name": (None, "Eve"), "photo": ("a.png", b"\\x89PNG")})

if __name__ == "__main__":
    trip = Trip("Porto", datetime.date(2026, 1, 2), ("a", "b"))
    planner.plan(trip, uuid.UUID(int=5), 7, 8, x=9)
    try:
        planner.plan(trip, uuid.UUID(int=5), strict=True)
    except LookupError:
        pass
    asyncio.run(requests())
    planner.secretly("sk-ant-api03-" + "x9Kd" * 20, object())
    Agent().act(), Agent.make(4), planner.maker()(), in_the_script(1)
"""
