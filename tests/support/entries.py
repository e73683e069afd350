"""The code that test_cli_replay_entry records and replays."""

PLANNER = """
import dataclasses, datetime, os, uuid
import httpx, pydantic, reenact

tap = reenact.Tap()

@dataclasses.dataclass
class Trip:
    city: str
    day: datetime.date
    stops: tuple[str, ...] = ()

class Price(pydantic.BaseModel):
    amount: int
    unit: str

def request_to(text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return {"url": os.environ["MODEL_URL"] + "/v1/messages", "json": body}

def text_of(answer):
    return answer.json()["content"][0]["text"]

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
    text = text_of(httpx.post(**request_to(f"{trip} {key}")))
    cost, found = price(len(trip.stops)), pair(3)
    if strict:
        raise LookupError(f"no room in {trip.city}")
    return {"said": text, "day": str(trip.day), "stops": repr(trip.stops), "key": key.int,
            "cost": cost.amount, "pair": repr((found[0], sorted(found[1]))), "more": more, "rest": rest}

@reenact.run
async def later(city: str):
    async with httpx.AsyncClient() as client:
        return text_of(await client.post(**request_to(city)))

@reenact.run
async def words(city: str):
    async with httpx.AsyncClient() as client:
        text = text_of(await client.post(**request_to(city)))
    for word in text.split():
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
import httpx
from planner import request_to, text_of
from contextlib import asynccontextmanager
from fastapi import FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware
from pydantic import BaseModel

@asynccontextmanager
async def lifespan(app):
    async with httpx.AsyncClient() as app.state.client:
        yield

shop = FastAPI(lifespan=lifespan)

class Order(BaseModel):
    item: str
    count: int

@shop.post("/orders/{customer}")
async def order(customer: str, order: Order, dry: bool = False):
    text = text_of(await shop.state.client.post(**request_to(f"{customer}, {order.item}, {dry}")))
    return {"each": 100 / order.count, "said": text}

@shop.post("/form")
async def form(request: Request):
    return (await shop.state.client.post(**request_to((await request.form())["name"]))).json()["id"]

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
