"""Odd tools of agents that are recorded with no line changed: recorded once, or not at all with a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.forked import type_in
from support.provider import Provider

LOOP = (Path(__file__).parents[1] / "support" / "tool_agents" / "agent_loop.py").read_text()
Events = list[dict[str, Any]]
Agent = Callable[..., tuple[str, Events]]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def agent(tmp_path: Path, provider: Provider) -> Agent:
    """Records an agent of these lines; returns all that was printed, and the events about tools."""

    def record(code: str, *flags: str) -> tuple[str, Events]:
        (tmp_path / "agent_loop.py").write_text(LOOP)
        (tmp_path / "agent.py").write_text(code)
        env = {**os.environ, "MODEL_URL": provider.url("plan")}
        done = type_in(["run", "--out", "runs", *flags, "agent.py"], tmp_path, env)
        assert done.returncode == 0, done.stdout + done.stderr
        texts = [path.read_text() for path in sorted((tmp_path / "runs").glob("*.jsonl"))]
        events = [json.loads(line) for text in texts for line in text.splitlines()]
        return done.stdout + done.stderr, [each for each in events if each["kind"].startswith("tool.")]

    return record


def called(events: Events) -> Events:
    return [each for each in events if each["kind"] == "tool.called"]


def results(events: Events) -> Events:
    return [each for each in events if each["kind"] == "tool.result"]


ONE = [[["lookup", {"city": "Oslo", "days": 2}]]]


def test_a_decorated_tool_is_recorded_once(agent: Agent) -> None:
    code = """
from agent_loop import conversation
from reenact import Tap
tap = Tap()
@tap.tool
def lookup(city, days): return city * days
@tap.tool
def book(hotel): return lookup("x", 1)
conversation(lambda name, args: globals()[name](**args))
"""
    text, events = agent(code)
    assert [each.get("source") for each in called(events)] == [None] * 5  # four uses, and one call inside
    assert "4 of 4 tool uses recorded" in text


PAUSES = ["GraphBubbleUp", "CallDeferred", "ApprovalRequired", "InterruptException", "RunCancelledException"]
"""Of LangGraph, Pydantic AI (two), Strands and Agno."""


def test_exceptions_that_pause_an_agent_are_suspensions_and_others_errors(agent: Agent) -> None:
    code = f"""
from agent_loop import conversation
def lookup(city, days): raise type(city, (type("Base" + city, (Exception,), {{}}),), {{}})([{{"value": city}}])
plan = [[["lookup", {{"city": kind, "days": 1}}]] for kind in {[*PAUSES, "Paused"]!r}]
conversation(lambda name, args: lookup(**args), plan)
"""
    _, events = agent(code)
    *paused, other = results(events)
    for kind, result in zip(PAUSES, paused, strict=True):
        assert result["error"] is None and result["result"] is None, kind
        assert result["suspended"]["kinds"] == [kind, f"Base{kind}", "Exception"]
        assert result["suspended"]["values"] == [[{"value": kind}]]
    assert other["error"]["type"] == "Paused" and "suspended" not in other


def test_other_arguments_of_a_framework_are_named_and_not_stored(agent: Agent) -> None:
    code = f"""
from agent_loop import conversation
class Context:
    secrets = ["s" * 1000]
def lookup(ctx, city, days, unit="km"): return city
conversation(lambda name, args: lookup(Context(), **args), {ONE!r})
"""
    _, events = agent(code)
    (call,) = called(events)
    assert call["args"] == {"city": "Oslo", "days": 2}
    assert call["injected"] == {"ctx": "<__main__.Context>", "unit": "km"}


def test_two_runs_with_equal_uses_and_no_context_are_not_mixed_up(agent: Agent) -> None:
    code = f"""
import threading
from concurrent.futures import ThreadPoolExecutor
from agent_loop import conversation
import reenact
pool, both = ThreadPoolExecutor(2), threading.Barrier(2)
def lookup(city, days): return city
def tool(name, args):
    both.wait()
    found = pool.submit(lookup, **args).result()  # a bare executor: no context
    both.wait()
    return found
def one(n):
    with reenact.run(f"run-{{n}}"):
        conversation(tool, {ONE!r})
threads = [threading.Thread(target=one, args=(n,)) for n in range(2)]
[each.start() for each in threads]
[each.join() for each in threads]
"""
    _, events = agent(code)
    assert not called(events)  # either pairing would be a guess


def test_a_bare_executor_is_recorded_in_the_run_that_called_the_tool(agent: Agent) -> None:
    code = f"""
import asyncio
from agent_loop import conversation
import reenact
def lookup(city, days): return city
async def later(args):
    return await asyncio.get_running_loop().run_in_executor(None, lambda: lookup(**args))
with reenact.run("inside"):
    conversation(lambda name, args: asyncio.run(later(args)), {ONE!r})
"""
    _, events = agent(code)
    (call,) = called(events)
    assert call["tool_id"] and call["parent"] and results(events)[0]["result"] == "Oslo"


def test_a_function_in_c_is_reported(agent: Agent) -> None:
    code = f"""
from agent_loop import conversation
lookup = dict
conversation(lambda name, args: lookup(**args), {ONE!r})
"""
    text, events = agent(code)
    assert not events and "0 of 1 tool use recorded" in text and "what the tool lookup does" in text


@pytest.mark.parametrize("define", ["def lookup(city, days): return city", "from later import lookup"])
def test_a_tool_that_is_defined_later_is_recorded_from_its_second_use_on(
    agent: Agent, define: str, tmp_path: Path
) -> None:
    (tmp_path / "later.py").write_text("def lookup(city, days): return city")
    code = f"""
from agent_loop import conversation
def run(name, args):
    global lookup
    if "lookup" not in globals():
        {define}
    return lookup(**args)
conversation(run, {ONE!r} + [[["lookup", {{"city": "Rome", "days": 1}}]]])
"""
    text, events = agent(code)
    assert [each["args"]["city"] for each in called(events)] == ["Rome"]
    assert "1 of 2 tool uses recorded" in text


@pytest.mark.parametrize(("folder", "count"), [("my_project/src", 1), ("lib/site-packages", 0)])
def test_an_editable_install_is_the_users_and_an_installed_package_is_not(
    agent: Agent, tmp_path: Path, folder: str, count: int
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "travel.py").write_text("def lookup(city, days): return city")
    (tmp_path / "travel.pth").write_text(str(tmp_path / folder))  # as pip writes it for an editable install
    code = f"""
import os, site
site.addsitedir(os.path.dirname(__file__))
import travel
from agent_loop import conversation
conversation(lambda name, args: travel.lookup(**args), {ONE!r})
"""
    text, events = agent(code)
    assert len(called(events)) == count and f"{count} of 1 tool use recorded" in text


def test_a_large_program_is_not_searched_by_the_collector_and_that_is_reported(agent: Agent) -> None:
    code = f"""
from agent_loop import conversation
def make():
    def lookup(city, days): return city
    return lookup
hidden = [*range(300), make()]  # a container of this size is not looked through
large = [[] for _ in range(400_000)]
conversation(lambda name, args: hidden[-1](**args), {ONE!r})
"""
    text, events = agent(code)
    assert not events and "the program has too many objects to search" in text
    assert "--tools lookup=module:function" in text
    _, events = agent(code.replace("400_000", "4"))
    assert len(called(events)) == 1


def test_a_function_whose_code_no_compiler_made_is_not_watched_and_named(agent: Agent) -> None:
    code = f"""
import opcode
from agent_loop import conversation
def lookup(city, days): return city
code, resume = lookup.__code__, bytes([opcode.opmap["RESUME"], 0])
lookup.__code__ = code.replace(co_code=code.co_code.replace(resume, bytes([opcode.opmap["NOP"], 0])))
conversation(lambda name, args: lookup(**args), {ONE!r})
"""
    text, events = agent(code)
    assert "lookup Oslo" in text and not events and "was not made by Python's compiler" in text


def test_a_tool_in_another_process_is_reported_and_not_mixed_up(agent: Agent) -> None:
    code = f"""
import multiprocessing
from agent_loop import conversation
def lookup(city, days): return city
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        conversation(lambda name, args: pool.apply(lookup, kwds=args), {ONE!r})
"""
    text, events = agent(code)
    assert not events and "0 of 1 tool use recorded" in text


def test_frozen_objects_are_found_in_modules(agent: Agent) -> None:
    code = f"""
import gc
from agent_loop import conversation
def lookup(city, days): return city
gc.freeze()
conversation(lambda name, args: lookup(**args), {ONE!r})
"""
    _, events = agent(code)
    assert len(called(events)) == 1


def test_greenlets_of_gevent_are_recorded(agent: Agent) -> None:
    pytest.importorskip("gevent")
    code = """
from gevent import monkey; monkey.patch_all()
import gevent
from agent_loop import conversation
def lookup(city, days):
    gevent.sleep(0.001)
    return city
plans = [[[["lookup", {"city": city, "days": 1}]]] for city in ("Oslo", "Rome", "Bern")]
gevent.joinall([gevent.spawn(conversation, lambda name, args: lookup(**args), plan) for plan in plans])
"""
    _, events = agent(code)
    assert sorted(each["args"]["city"] for each in called(events)) == ["Bern", "Oslo", "Rome"]
    ends = {each["call"]: each["result"] for each in results(events)}
    assert all(ends[each["call"]] == each["args"]["city"] for each in called(events))


def test_a_watched_function_can_be_pickled_by_value_and_uninstall_restores_it(agent: Agent) -> None:
    code = f"""
import cloudpickle, pickle
from agent_loop import conversation
import reenact
def lookup(city, days): return city
before, kept = lookup.__code__, []
def run(name, args):
    kept.extend(lookup.__code__.co_consts)
    copy = pickle.loads(cloudpickle.dumps(lookup))
    assert copy(city="x", days=1) == "x"
    return lookup(**args)
conversation(run, {ONE!r})
assert lookup.__code__ is not before and hash(lookup.__code__)
for const in kept:
    again = pickle.loads(pickle.dumps(const))
    assert not callable(again) or isinstance(again, type) or again(1, 2) is None
reenact.uninstall()
assert lookup.__code__ is before
"""
    _, events = agent(code)
    assert len(called(events)) == 1


@pytest.mark.long
def test_the_results_of_an_openai_client_that_streams_are_recorded(agent: Agent) -> None:
    pytest.importorskip("openai")
    code = f"""
import json, os, openai
client = openai.OpenAI(base_url=os.environ["MODEL_URL"] + "/v1", api_key="none", max_retries=0)
def lookup(city, days): raise ConnectionError("no route")
messages = [{{"role": "user", "content": "PLAN " + json.dumps({ONE!r})}}]
for turn in range(2):
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    use = dict(id="", name="", arguments="")
    for chunk in stream:
        for choice in chunk.choices:
            for call in choice.delta.tool_calls or ():
                use["id"] += call.id or ""
                use["name"] += call.function.name or ""
                use["arguments"] += call.function.arguments or ""
    if not use["id"]:
        break
    try:
        text = lookup(**json.loads(use["arguments"]))
    except ConnectionError:
        text = "failed"
    function = {{"name": use["name"], "arguments": use["arguments"]}}
    messages.append({{"role": "assistant", "tool_calls": [{{"id": use["id"], "type": "function", "function": function}}]}})
    messages.append({{"role": "tool", "tool_call_id": use["id"], "content": text}})
"""
    _, events = agent(code)
    (result,) = results(events)
    assert result["tool_id"] and result["error"]["message"] == "no route"


WORK = """
from agent_loop import conversation
def run(**args):
    print("RUNS", args)
    return "booked"
def check(hotel): return len(hotel) > 2
"""
DISPATCHED = {
    "a fallback of the same name": (
        """
def book(hotel): raise ConnectionError("down")
def by_phone(hotel): return run(hotel=hotel)
by_phone.__name__ = "book"
FALLBACK = {"book": by_phone}
def call(name, args):
    try: return book(**args)
    except ConnectionError: return FALLBACK[name](**args)
""",
        [None, "booked"],
    ),
    "another method before the one that works": (
        """
class Book:
    name = "book"
    def validate(self, hotel): return check(hotel)
    def reserve(self, hotel): return run(hotel=hotel)
TOOLS = [Book()]
def call(name, args): return TOOLS[0].validate(**args) and TOOLS[0].reserve(**args)
""",
        [True, "booked"],
    ),
    "an inherited method with a usual name": (
        """
class Base:
    def handle(self, event): return None
class Book(Base):
    name = "book"
    def reserve(self, hotel): return run(hotel=hotel)
TOOLS = [Book()]
def call(name, args): return TOOLS[0].reserve(**args)
""",
        ["booked"],
    ),
    "a row with a function of the name": (
        """
def book(hotel): return run(hotel=hotel)
TOOLS = [{"name": "book", "check": check, "fn": book}]
def call(name, args): return TOOLS[0]["check"](**args) and TOOLS[0]["fn"](**args)
""",
        ["booked"],
    ),
    "a row under the name": (
        """
def reserve(hotel): return run(hotel=hotel)
TOOLS = {"book": {"fn": reserve, "description": "Book."}}
def call(name, args): return TOOLS[name]["fn"](**args)
""",
        ["booked"],
    ),
    "a row in a function": (
        """
def main():
    tools = [("book", lambda hotel: run(hotel=hotel))]
    return lambda name, args: dict(tools)[name](**args)
call = main()
""",
        ["booked"],
    ),
    "a row with two functions": (
        """
def reserve(hotel): return run(hotel=hotel)
TOOLS = [{"name": "book", "check": check, "fn": reserve}]
def call(name, args): return TOOLS[0]["check"](**args) and TOOLS[0]["fn"](**args)
""",
        [],
    ),
}


@pytest.mark.parametrize("case", DISPATCHED)
def test_whatever_leads_to_a_function_no_tool_runs_in_a_replay(
    case: str, agent: Agent, tmp_path: Path, provider: Provider
) -> None:
    code, expected = DISPATCHED[case]
    text, events = agent(WORK + code + 'conversation(call, [[["book", {"hotel": "Opera"}]]])\n')
    assert [each["result"] for each in results(events)] == expected
    assert len({each["tool_id"] for each in called(events)}) == bool(expected)
    assert text.count("RUNS") == 1
    (path,) = (tmp_path / "runs").glob("*.jsonl")
    replayed = type_in(["replay", path], tmp_path, {**os.environ, "MODEL_URL": provider.url("plan")})
    assert replayed.returncode == (0 if expected else 2), replayed.stderr
    assert "RUNS" not in replayed.stdout + replayed.stderr


def test_a_text_and_a_number_are_distinguished_where_both_are_there(agent: Agent) -> None:
    plan = [[["book", {"hotel": "2"}], ["book", {"hotel": 2}]]]
    code = f"""
import agent_loop, json
def book(hotel): return repr(hotel)
messages = [{{"role": "user", "content": "PLAN " + json.dumps({plan!r})}}]
message = agent_loop.ask(messages)
done = {{each["id"]: book(**json.loads(each["function"]["arguments"])) for each in reversed(message["tool_calls"])}}
print(json.dumps(done))
"""
    text, events = agent(code)
    ids = {each["call"]: each["tool_id"] for each in called(events)}
    assert {ids[each["call"]]: each["result"] for each in results(events)} == json.loads(text.splitlines()[0])


def replayed(folder: Path, provider: Provider, *flags: str) -> tuple[int, str]:
    """Replay the only run; returns the exit code and all that was printed."""
    (path,) = (folder / "runs").glob("*.jsonl")
    done = type_in(["replay", path, *flags], folder, {**os.environ, "MODEL_URL": provider.url("plan")})
    return done.returncode, done.stdout + done.stderr


def test_attempts_that_never_start_or_overlap_are_told_apart_and_none_runs_in_a_replay(
    agent: Agent, tmp_path: Path, provider: Provider
) -> None:
    code = """
import asyncio, time
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from agent_loop import conversation
pool, tries = ThreadPoolExecutor(4), []
async def lookup(city, days):
    print("RUNS", city)
    return city
def book(hotel):
    print("RUNS", hotel)
    tries.append(hotel)
    if len(tries) == 1:
        time.sleep(1)
    return hotel
async def second(args):
    lookup(**args).close()  # a coroutine that never starts is no attempt
    return await lookup(**args)
def call(name, args):
    if name == "lookup":
        return asyncio.run(second(args))
    try:
        return pool.submit(book, **args).result(timeout=0.2)
    except TimeoutError:  # the first attempt is still under way, in a bare executor
        return pool.submit(book, **args).result()
conversation(call, [[["lookup", {"city": "Oslo", "days": 2}]], [["book", {"hotel": "Opera"}]]])
"""
    text, events = agent(code)
    assert text.count("RUNS") == 3 and "2 of 2 tool uses recorded" in text
    attempts = [(each["tool"], each.get("attempt")) for each in called(events)]
    assert attempts == [("lookup", None), ("book", None), ("book", 2)]
    assert len({each["tool_id"] for each in called(events)}) == 2
    exit_code, printed = replayed(tmp_path, provider)
    assert exit_code == 0 and "RUNS" not in printed, printed


def test_a_call_inside_a_tool_that_lost_its_context_is_no_second_attempt(agent: Agent) -> None:
    code = f"""
import functools
from concurrent.futures import ThreadPoolExecutor
from agent_loop import conversation
pool = ThreadPoolExecutor(1)
def in_a_thread(function):
    @functools.wraps(function)
    def lookup(**args): return pool.submit(function, **args).result()
    return lookup
@in_a_thread
def lookup(city, days): return city
conversation(lambda name, args: lookup(**args), {ONE!r})
"""
    _, events = agent(code)
    assert len(called(events)) == 1


def test_changed_arguments_in_one_object_do_not_run_in_a_replay(
    agent: Agent, tmp_path: Path, provider: Provider
) -> None:
    code = """
import os
from agent_loop import conversation
def lookup(args):
    print("RUNS", args)
    return args["city"]
def call(name, args):
    return lookup({**args, "city": args["city"].lower()} if os.path.exists("changed") else args)
conversation(call, [[["lookup", {"city": "Oslo", "days": 2}], ["lookup", {"city": "Rome", "days": 2}]]])
"""
    text, events = agent(code)
    assert text.count("RUNS") == len(called(events)) == 2
    (tmp_path / "changed").touch()
    exit_code, printed = replayed(tmp_path, provider)
    assert exit_code == 3 and "RUNS" not in printed
    assert "so it did not run" in printed and "add --live-tools lookup" in printed


def test_the_search_and_the_pairing_run_no_code_of_the_agent(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text("print('IMPORTED')")
    code = f"""
import importlib.util, sys, weakref
from agent_loop import conversation
spec = importlib.util.find_spec("lazy")
spec.loader = importlib.util.LazyLoader(spec.loader)
sys.modules["lazy"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["lazy"])
class Proxy:
    @property
    def __class__(self): print("LOADED"); return dict
    def __repr__(self): print("LOADED"); return ""
    def to_dict(self): print("LOADED"); return {{}}
class Gone: pass
proxy, dead = Proxy(), weakref.proxy(Gone())
def lookup(context, args): return args["city"]
conversation(lambda name, args: lookup(proxy, args), {ONE!r})
"""
    text, events = agent(code)
    assert len(called(events)) == 1 and "could not" not in text
    assert "LOADED" not in text and "IMPORTED" not in text


def test_a_tool_use_stays_open_while_an_agent_in_another_one_makes_many_calls(agent: Agent) -> None:
    code = """
import json
from agent_loop import ask, conversation
def note(n): return "noted"
def helper(task):
    messages = [{"role": "user", "content": "PLAN " + json.dumps([[["note", {"n": n}]] for n in range(66)])}]
    while (message := ask(messages)).get("tool_calls"):
        (call,) = message["tool_calls"]
        text = note(**json.loads(call["function"]["arguments"]))
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": text}]
    return task
def book(hotel): return hotel
conversation(lambda name, args: globals()[name](**args), [[["helper", {"task": "t"}], ["book", {"hotel": "h"}]]])
"""
    text, events = agent(code)
    assert "68 of 68 tool uses recorded" in text and called(events)[-1]["tool"] == "book"


def test_a_function_in_a_class_that_a_framework_made_is_found(agent: Agent, tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "framework.py"
    library.parent.mkdir()
    library.write_text("""
def tool(function):
    def forward(*args, **kwargs): return function(*args, **kwargs)
    return type("Made", (), {"name": function.__name__, "forward": staticmethod(forward)})()
""")
    code = f"""
import gc, sys
sys.path.append("site-packages")
from agent_loop import conversation
from framework import tool
@tool
def lookup(city, days): return city
gc.freeze()  # so that the collector does not find it
conversation(lambda name, args: lookup.forward(**args), {ONE!r})
"""
    _, events = agent(code)
    assert [each["source"] for each in called(events)] == ["found"]


def test_a_function_inside_a_running_one_is_found_without_the_collector(agent: Agent) -> None:
    code = f"""
import gc, weakref
from agent_loop import conversation
class Data: pass
def main():
    data = Data()
    alive = weakref.ref(data)
    def lookup(city, days): return city
    gc.freeze()
    conversation(lambda name, args: lookup(**args), {ONE!r})
    del data
    print("alive", alive() is not None)
def snapshot():
    before = locals()
    def book(hotel): return hotel
    conversation(lambda name, args: book(**args), [[["book", {{"hotel": "Opera"}}]]])
    print("names", sorted(before))
main()
snapshot()
"""
    text, events = agent(code)
    assert [each["tool"] for each in called(events)][:1] == ["lookup"]
    assert "alive False" in text and "names []" in text


def test_a_result_of_another_type_than_its_json_is_named_before_the_start_unless_it_is_rebuilt(
    agent: Agent, tmp_path: Path, provider: Provider
) -> None:
    code = """
from dataclasses import dataclass
from agent_loop import conversation
class Listing(list): pass
@dataclass
class Room:
    number: int
def lookup(city, days): return Listing([city])
def book(hotel): return (hotel, {hotel})
def price(n) -> Room: return Room(n)
def count(n) -> int: return n
def steps(n):
    yield "half done"
    yield Room(n)
def shown(name, args):
    found = globals()[name](**args)
    found = list(found) if name == "steps" else found
    return f"{type(found).__name__} {found}"
conversation(shown, [[["book", {"hotel": "Opera"}]], [["price", {"n": 7}]], [["count", {"n": 7}]]])
conversation(shown, [[["lookup", {"city": "Oslo", "days": 1}]], [["steps", {"n": 7}]]])
"""
    text, events = agent(code)
    rebuilt = ["tuple", None, None]
    not_rebuilt = ["__main__.Listing", "generator of __main__.Room"]
    assert [each.get("result_type") for each in results(events)] == rebuilt + not_rebuilt
    exit_code, printed = replayed(tmp_path, provider)
    head, _, rest = printed.partition("book tuple")
    assert exit_code == 3 and rest  # the listing is a list
    assert (
        "1 result of tool lookup cannot be rebuilt as __main__.Listing: the code gets the plain data"
        in printed
    )
    assert "1 result of tool steps cannot be rebuilt as generator of __main__.Room" in printed
    assert "tool book cannot" not in printed and "tool price cannot" not in printed


def test_a_use_that_the_programs_own_cache_answered_is_answered_by_it_again_and_never_runs(
    agent: Agent, tmp_path: Path, provider: Provider
) -> None:
    code = f"""
import functools, os
from agent_loop import conversation
def lookup(city, days):
    print("RUNS", city)
    return city
if not os.path.exists("changed"):
    lookup = functools.cache(lookup)
conversation(lambda name, args: lookup(**args), {ONE + ONE!r})
"""
    text, events = agent(code)
    assert len(called(events)) == text.count("RUNS") == 1 and "1 of 2 tool uses recorded" in text
    exit_code, printed = replayed(tmp_path, provider)
    assert exit_code == 0 and "RUNS" not in printed, printed
    assert "1 use of tool lookup had its result from the program itself" in printed
    (tmp_path / "changed").touch()
    exit_code, printed = replayed(tmp_path, provider)
    assert exit_code == 3 and "RUNS" not in printed
    assert "extra-call" in printed and "add --live-tools lookup" in printed


@pytest.mark.parametrize("define", ["def lookup(city, days): return spend(city)", "from later import lookup"])
def test_a_function_that_replaces_a_recorded_one_after_the_response_does_nothing_and_is_named(
    define: str, agent: Agent, tmp_path: Path, provider: Provider
) -> None:
    spend = """
def spend(city):
    with open("spent", "a") as file: file.write(city)
    return city
"""
    (tmp_path / "later.py").write_text(spend + "def lookup(city, days): return spend(city)")
    code = f"""
import os
from agent_loop import conversation
{spend}
def lookup(city, days): return spend(city)
def changed(args):
    {define}
    return lookup(**args)
def call(name, args): return changed(args) if os.path.exists("changed") else lookup(**args)
conversation(call, {ONE!r})
"""
    agent(code)
    assert (tmp_path / "spent").read_text() == "Oslo"
    (tmp_path / "changed").touch()
    exit_code, printed = replayed(tmp_path, provider)
    assert exit_code == 3 and (tmp_path / "spent").read_text() == "Oslo"
    assert "refused to write" in printed and "[tools] lookup = {" in printed
    assert "a function that was not there when the response arrived" in printed
    (tmp_path / "agent.py").write_text(code.replace("return spend(city)", "return city"))
    (tmp_path / "later.py").write_text("def lookup(city, days): return city")
    exit_code, printed = replayed(tmp_path, provider)
    assert exit_code == 3 and "[tools] lookup = {" in printed and "swapped" not in printed, printed


def test_a_stream_that_nobody_reads_to_its_end_offers_its_tools_at_the_last_event(agent: Agent) -> None:
    """LiteLLM stops there, calls the tool, and lets the collector close the response."""
    code = """
import http.server, json, threading, httpx
TOOL = {"name": "lookup", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
USE = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {}}
EVENTS = [
    {"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant", "model": "m",
     "content": [], "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": USE},
    {"type": "content_block_delta", "index": 0,
     "delta": {"type": "input_json_delta", "partial_json": json.dumps({"city": "Oslo"})}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
has_called = threading.Event()

class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for each in EVENTS:
            data = f"event: {each['type']}\\ndata: {json.dumps(each)}\\n\\n".encode()
            self.wfile.write(f"{len(data):x}\\r\\n".encode() + data + b"\\r\\n")
        has_called.wait(60)
        self.wfile.write(b"0\\r\\n\\r\\n")

def lookup(city):
    return f"rain in {city}"

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
body = {"model": "m", "max_tokens": 9, "stream": True, "tools": [TOOL],
        "messages": [{"role": "user", "content": "weather?"}]}
url = f"http://127.0.0.1:{server.server_port}/v1/messages"
with httpx.Client(trust_env=False, timeout=60) as client, client.stream("POST", url, json=body) as response:
    lines = response.iter_lines()
    while '"message_stop"' not in next(lines):
        pass
    print(lookup("Oslo"))
    has_called.set()
"""
    text, events = agent(code)
    assert "rain in Oslo" in text
    (result,) = results(events)
    assert result["result"] == "rain in Oslo" and called(events)[0]["tool_id"] == "t1"
