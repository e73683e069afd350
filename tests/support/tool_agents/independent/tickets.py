"""Ticket system agent. Handlers take ONE typed argument object (pydantic-like, but home grown)."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import sys
import typing as t
import urllib.request
from dataclasses import dataclass

PLAN = [
    [["open_ticket", {"title": "Printer on fire", "priority": "high", "tags": ["hw", "urgent"]}]],
    [["open_ticket", {"title": "Typo on homepage"}], ["assign", {"ticket": 1, "user": "ann"}]],
    [["assign", {"ticket": "2", "user": "nobody"}], ["comment", {"ticket": 1, "text": "Use water?"}]],
    [["close_ticket", {"ticket": 1, "resolution": "extinguished"}], ["close_ticket", {"ticket": 7}]],
]


class Priority(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Args:
    @classmethod
    def parse(cls, raw: str):
        data, hints, out = json.loads(raw), t.get_type_hints(cls), {}
        for f in dataclasses.fields(cls):
            if f.name in data:
                typ = hints[f.name]
                out[f.name] = typ(data[f.name]) if isinstance(typ, type) else data[f.name]
        return cls(**out)

    @classmethod
    def json_schema(cls) -> dict:
        names = {int: "integer", str: "string", Priority: "string"}
        hints = t.get_type_hints(cls)
        return {
            "type": "object",
            "properties": {k: {"type": names.get(v, "array")} for k, v in hints.items()},
        }


@dataclass(frozen=True)
class OpenTicket(Args):
    title: str
    priority: Priority = Priority.LOW
    tags: t.List[str] = dataclasses.field(default_factory=list)


@dataclass(frozen=True)
class Assign(Args):
    ticket: int
    user: str


@dataclass(frozen=True)
class Comment(Args):
    ticket: int
    text: str


@dataclass(frozen=True)
class CloseTicket(Args):
    ticket: int
    resolution: str = "fixed"


@dataclass
class Ticket:
    id: int
    title: str
    priority: Priority
    tags: list
    assignee: t.Optional[str] = None
    comments: list = dataclasses.field(default_factory=list)
    state: str = "open"

    def __str__(self):
        return f"#{self.id} {self.title} [{self.state}, {self.priority.value}] -> {self.assignee}"


class ToolFailure(Exception):
    """Raised by handlers, shown to the model."""


DB: dict[int, Ticket] = {}
HANDLERS: dict[str, tuple[type[Args], t.Callable[[t.Any], Ticket]]] = {}


def handles(name: str):
    def register(fn):
        HANDLERS[name] = (t.get_type_hints(fn)["a"], fn)
        return fn

    return register


def effect(name: str) -> None:
    with open("effects.txt", "a", encoding="utf-8") as out:
        out.write(f"{name}\n")


@handles("open_ticket")
def on_open(a: OpenTicket) -> Ticket:
    effect("open_ticket")
    ticket = DB[len(DB) + 1] = Ticket(len(DB) + 1, a.title, a.priority, a.tags)
    return ticket


@handles("assign")
def on_assign(a: Assign) -> Ticket:
    effect("assign")
    if a.user not in {"ann", "bert"}:
        raise ToolFailure(f"no such user {a.user}")
    DB[a.ticket].assignee = a.user
    return DB[a.ticket]


@handles("comment")
def on_comment(a: Comment) -> Ticket:
    effect("comment")
    DB[a.ticket].comments.append(a.text)
    return DB[a.ticket]


@handles("close_ticket")
def on_close(a: CloseTicket) -> Ticket:
    effect("close_ticket")
    try:
        ticket = DB[a.ticket]
    except KeyError as e:
        raise ToolFailure(f"no ticket {a.ticket}") from e
    ticket.state = a.resolution
    return ticket


def invoke(call: dict) -> str:
    model, handler = HANDLERS[call["function"]["name"]]
    args = model.parse(call["function"]["arguments"])
    print("call", args)
    try:
        return f"OK {handler(args)}"
    except ToolFailure as failure:
        return f"FAILED {failure}"


def main() -> int:
    tools = [
        {"type": "function", "function": {"name": n, "parameters": m.json_schema()}}
        for n, (m, _) in HANDLERS.items()
    ]
    history = [{"role": "user", "content": f"PLAN {json.dumps(PLAN)}"}]
    while True:
        req = urllib.request.Request(f"{os.environ['MODEL_URL']}/v1/chat/completions", method="POST")
        req.add_header("Content-Type", "application/json")
        req.data = json.dumps({"model": "m", "messages": history, "tools": tools}).encode()
        reply = json.loads(urllib.request.urlopen(req).read())["choices"][0]["message"]
        history.append(reply)
        if not (calls := reply.get("tool_calls")):
            break
        for call in calls:
            history.append({"role": "tool", "tool_call_id": call["id"], "content": (text := invoke(call))})
            print("    ", text)
    print(reply["content"])
    print(*DB.values(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
