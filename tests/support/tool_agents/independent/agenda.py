import asyncio
import functools
import inspect
import json
import os
from dataclasses import dataclass, field
from urllib import request

TASK = "PLAN " + json.dumps(
    [
        [
            ["list_events", {"day": "2024-05-02"}],
            ["list_events", {"day": "2024-05-03"}],
            ["find_person", {"name": "Zoë"}],
        ],
        [
            [
                "create_event",
                {"day": "2024-05-03", "start": "14:00", "title": "Review", "guests": ["Zoë", "Bob"]},
            ],
            ["find_person", {"name": "Mallory"}],
        ],
        [["create_event", {"day": "2024-05-03", "start": "14:00", "title": "Coffee"}]],
        [["send_invite", {"event_id": 3, "to": "zoe@example.com"}]],
    ]
)

TOOLS = {}
JSON_TYPES = {str: "string", int: "integer", list: "array", bool: "boolean"}


class Conflict(Exception):
    pass


def tool(*, description, name=None):
    """Register a coroutine function as a tool; the first parameter (ctx) is given by the agent."""

    def decorate(fn):
        tool_name = name or fn.__name__
        params = list(inspect.signature(fn).parameters.values())[1:]

        @functools.wraps(fn)
        async def wrapper(ctx, **kw):
            async with ctx.lock:
                with open("effects.txt", "a") as f:
                    print(tool_name, file=f)
            return await fn(ctx, **kw)

        TOOLS[tool_name] = wrapper
        wrapper.schema = {
            "type": "function",
            "function": {
                "name": tool_name,
                "description": description,
                "parameters": {
                    "type": "object",
                    "properties": {p.name: {"type": JSON_TYPES[p.annotation]} for p in params},
                    "required": [p.name for p in params if p.default is p.empty],
                },
            },
        }
        return wrapper

    return decorate


@dataclass
class Context:
    events: list = field(
        default_factory=lambda: [
            {"id": 1, "day": "2024-05-02", "start": "09:00", "title": "Standup", "guests": []},
            {"id": 2, "day": "2024-05-03", "start": "09:00", "title": "Standup", "guests": []},
        ]
    )
    people: dict = field(default_factory=lambda: {"Zoë": "zoe@example.com", "Bob": "bob@example.com"})
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@tool(description="All events of one day")
async def list_events(ctx, day: str):
    await asyncio.sleep(0.01)
    return [e for e in ctx.events if e["day"] == day]


@tool(description="Mail address of a person", name="find_person")
async def lookup(ctx, name: str):
    await asyncio.sleep(0.03 if name == "Zoë" else 0)
    return ctx.people[name]


@tool(description="Make a new event")
async def create_event(ctx, day: str, start: str, title: str, guests: list = ()):
    for e in await list_events.__wrapped__(ctx, day=day):
        if e["start"] == start:
            raise Conflict(f"{e['title']!r} is already at {start}")
    event = {"id": len(ctx.events) + 1, "day": day, "start": start, "title": title, "guests": list(guests)}
    ctx.events.append(event)
    return event


@tool(description="Send an invitation")
async def send_invite(ctx, event_id: int, to: str):
    event = next(e for e in ctx.events if e["id"] == event_id)
    event.setdefault("invited", []).append(to)


def post(messages):
    body = json.dumps({"model": "m", "messages": messages, "tools": [t.schema for t in TOOLS.values()]})
    req = request.Request(
        os.environ["MODEL_URL"].rstrip("/") + "/v1/chat/completions",
        body.encode("utf-8"),
        {"Content-Type": "application/json"},
    )
    with request.urlopen(req, timeout=30) as r:
        return json.loads(r.read())["choices"][0]["message"]


async def guarded(ctx, call):
    fn = call["function"]
    try:
        out = await TOOLS[fn["name"]](ctx, **json.loads(fn["arguments"]))
    except Exception as exc:
        out = {"error": type(exc).__name__, "detail": str(exc)}
    return json.dumps(out, ensure_ascii=False)


async def main():
    ctx = Context()
    messages = [{"role": "user", "content": TASK}]
    while True:
        msg = await asyncio.to_thread(post, messages)
        messages.append(msg)
        calls = msg.get("tool_calls") or []
        if not calls:
            print("assistant:", msg["content"])
            break
        async with asyncio.TaskGroup() as tg:
            tasks = [tg.create_task(guarded(ctx, c)) for c in calls]
        for call, task in zip(calls, tasks):
            print(call["function"]["name"], "->", task.result())
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": task.result()})
    print("events:", ", ".join(f"{e['title']}@{e['start']}" for e in ctx.events))


asyncio.run(main())
