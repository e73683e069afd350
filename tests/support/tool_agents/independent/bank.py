# bank teller bot - a tiny state machine (THINK -> ACT -> THINK ... -> DONE), dispatch with match
import json
import os
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from urllib.request import Request, urlopen

PLAN = """PLAN [[["balance", {"account": "alice"}], ["balance", {"account": "bob"}]],
 [["transfer", {"source": "alice", "target": "bob", "cents": 2500, "memo": "rent"}]],
 [["transfer", {"source": "bob", "target": "carol", "cents": 999999}], ["freeze", {"account": "dave"}]],
 [["freeze", {"account": "carol"}]],
 [["statement", {"account": "bob"}]]]"""


class State(Enum):
    THINK = auto()
    ACT = auto()
    DONE = auto()


class BankError(Exception):
    code = "E00"


class InsufficientFunds(BankError):
    code = "E42"


class NoSuchAccount(BankError, KeyError):
    code = "E44"

    def __str__(self):
        return f"no account named {self.args[0]}"


accounts = {"alice": 10_000, "bob": 50, "carol": 0}
frozen: set[str] = set()
journal: list[tuple[str, str, int, str]] = []


def _effect(name):
    with open("effects.txt", "a") as f:
        f.write(name + "\n")


def balance(account: str) -> int:
    _effect("balance")
    if account not in accounts:
        raise NoSuchAccount(account)
    return accounts[account]


def transfer(source: str, target: str, cents: int, memo: str = "") -> dict:
    _effect("transfer")
    if balance(source) < cents:  # uses the other tool
        raise InsufficientFunds(f"{source} has less than {cents / 100:.2f}")
    accounts[source] -= cents
    accounts[target] += cents
    journal.append((source, target, cents, memo))
    return {source: accounts[source], target: accounts[target]}


def freeze(account: str) -> None:
    _effect("freeze")
    if account not in accounts:
        raise NoSuchAccount(account)
    frozen.add(account)


def statement(account: str) -> list[str]:
    _effect("statement")
    lines = []
    for source, target, cents, memo in journal:
        match (source == account, target == account):
            case (True, _):
                lines.append(f"-{cents / 100:.2f} to {target} ({memo})")
            case (_, True):
                lines.append(f"+{cents / 100:.2f} from {source} ({memo})")
    return lines


def dispatch(name: str, args: dict[str, Any]) -> Any:
    match name, args:
        case "balance", {"account": str(who)}:
            return f"{balance(who) / 100:.2f}"
        case "transfer", {"source": src, "target": dst, "cents": int(n), **rest}:
            return transfer(src, dst, n, rest.get("memo", "-"))
        case "freeze", {"account": who}:
            return freeze(who)
        case "statement", {"account": who}:
            return statement(who)
        case _:
            raise BankError(f"cannot do {name}")


def schema(name, *strings, **extra):
    props = {s: {"type": "string"} for s in strings} | {k: {"type": v} for k, v in extra.items()}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": props}},
    }


TOOLS = [
    schema("balance", "account"),
    schema("transfer", "source", "target", "memo", cents="integer"),
    schema("freeze", "account"),
    schema("statement", "account"),
]


@dataclass
class Teller:
    messages: list[dict] = field(default_factory=list)
    state: State = State.THINK

    def think(self) -> State:
        body = json.dumps({"model": "m", "messages": self.messages, "tools": TOOLS}).encode()
        with urlopen(
            Request(
                os.environ["MODEL_URL"] + "/v1/chat/completions",
                data=body,
                headers={"Content-Type": "application/json"},
            )
        ) as r:
            self.messages.append(json.load(r)["choices"][0]["message"])
        return State.ACT if self.messages[-1].get("tool_calls") else State.DONE

    def act(self) -> State:
        for call in self.messages[-1]["tool_calls"]:
            match call:
                case {"id": cid, "function": {"name": name, "arguments": raw}}:
                    try:
                        text = json.dumps(dispatch(name, json.loads(raw)))
                    except BankError as e:
                        text = f"{e.code}: {e}"
                    print(f"{name}({raw}) = {text}")
                    self.messages.append({"role": "tool", "tool_call_id": cid, "content": text})
        return State.THINK

    def run(self):
        while self.state is not State.DONE:
            self.state = {State.THINK: self.think, State.ACT: self.act}[self.state]()
        return self.messages[-1]["content"]


if __name__ == "__main__":
    print(Teller([{"role": "user", "content": PLAN}]).run())
    print(accounts, sorted(frozen))
