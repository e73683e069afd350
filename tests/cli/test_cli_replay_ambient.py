"""Clocks and random numbers in prompts: recorded, and the same in a replay."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.forked import type_in
from support.provider import Provider

POST = """
import json, os, sys, urllib.request

def post(text):
    url = os.environ["MODEL_URL"] + "/v1/chat/completions"
    data = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(text, json.load(answer)["id"], flush=True)
"""
PLAIN = """
from wire import post
from datetime import datetime
import uuid
post(f"It is {datetime.now():%Y-%m-%d %H:%M:%S.%f}, job {uuid.uuid4()}.")
"""
HELPERS = """
import asyncio, os, subprocess, sys, threading
import reenact
from wire import post

def ask(who):
    post(f"{who}: {reenact.now()} {reenact.uuid()} {reenact.random()}")

async def side_by_side():
    async def one(name):
        stamp = reenact.uuid()
        await asyncio.sleep(0.001)
        return f"{name} {stamp} {reenact.now()}"
    post(" ".join(await asyncio.gather(*map(one, "abc"))))

if sys.argv[1:] == ["child"]:
    ask("child")
    sys.exit()
ask("main")
asyncio.run(side_by_side())
threads = [threading.Thread(target=ask, args=(name,), name=name) for name in ("left", "right")]
for thread in threads:
    thread.start()
    thread.join()
subprocess.run([sys.executable, __file__, "child"], check=True)
if os.fork() == 0:
    ask("forked")
    os._exit(0)
os.wait()
ask("again")
"""
UNTOUCHED = """
from tools import stamp, LOADED
import random, time
from wire import post
random.seed(5)
post(f"{LOADED} {stamp()} {time.strftime('%H:%M:%S')} {random.choice(range(10**9))} {random.sample(range(99), 3)}")
print(sorted(random.Random(5).sample(range(99), 3)))
"""
TOOLS = """
from datetime import datetime
LOADED = datetime.now()

def stamp():
    from uuid import uuid4
    import secrets
    import library
    assert library.is_plain()
    return f"{datetime.today().isoformat()} {uuid4()} {secrets.randbelow(10**9)}"
"""
LIBRARY = """
import datetime, sys, time
def is_plain():
    return datetime is sys.modules["datetime"] and type(time) is type(sys) and type(time.time).__name__ == "builtin_function_or_method"
"""


class Typed:
    def __init__(self, folder: Path, url: str) -> None:
        files = {"wire": POST, "plain": PLAIN, "helpers": HELPERS, "untouched": UNTOUCHED}
        for name, text in (files | {"tools": TOOLS, "library": LIBRARY}).items():
            (folder / f"{name}.py").write_text(text)
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env["MODEL_URL"] = url

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, self.env)

    def events(self, name: str) -> list[dict[str, object]]:
        path = next((self.folder / ".reenact").glob(f"*-{name}-[0-9a-f]*.jsonl"))
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def typed(tmp_path: Path, provider: Provider) -> Typed:
    return Typed(tmp_path, provider.url("text"))


def test_a_date_in_a_prompt_is_reported_with_what_helps(typed: Typed) -> None:
    assert typed("run", "--name", "first", "plain.py").returncode == 0
    other = typed("replay", "first", "--json")
    assert other.returncode == 3
    (reported,) = json.loads(other.stderr.splitlines()[-1])["diverged"]
    assert reported["code"] == "changed-request" and reported["hints"][:2] == ["clock", "random-id"]


def test_what_the_helpers_gave_they_give_again(typed: Typed) -> None:
    first = typed("run", "--name", "first", "helpers.py")
    assert first.returncode == 0 and first.stdout.count("chatcmpl") == 7, first.stderr
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert "replayed as recorded: 7 calls answered" in again.stderr
    more = typed.folder / "helpers.py"
    more.write_text(more.read_text() + "print(type(reenact.now()).__name__)\n")
    drawn = typed("replay", "first")
    assert drawn.stdout == first.stdout + "datetime\n" and drawn.returncode == 0
    assert "now answered, but uncertain: no value is recorded for it" in drawn.stderr


def test_code_that_knows_nothing_of_it_gets_its_clock_and_chance(typed: Typed) -> None:
    first = typed("run", "--name", "first", "--ambient", "__main__,tools", "untouched.py")
    assert first.returncode == 0, first.stderr
    events = typed.events("first")
    assert events[0]["ambient"] == ["__main__", "tools"]
    names = [event["name"] for event in events if event["kind"] == "ambient"]
    assert names[:2] == ["time.time", "time.time"] and names[2:4] == [
        "uuid.uuid4",
        "secrets.randbelow(1000000000)",
    ]
    unpatched = typed("run", "--name", "bare", "untouched.py")
    assert (
        unpatched.stdout.split(" chatcmpl")[0].split()[6:] == first.stdout.split(" chatcmpl")[0].split()[6:]
    )
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert "replayed as recorded: 1 call answered" in again.stderr


def test_what_is_no_module_is_refused(typed: Typed) -> None:
    refused = typed("run", "--ambient", "plain.py", "plain.py")
    assert refused.returncode == 2 and "plain.py is not a module" in refused.stderr and not refused.stdout
    (typed.folder / "reenact.toml").write_text('[run]\nambient = ["no-module"]\n')
    assert "is not a module" in typed("run", "plain.py").stderr
