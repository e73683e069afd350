"""Agents of several processes, each a shape: ``python processes_agent.py SHAPE``.

What they do takes a random time, so work is spread over workers in another way each time; what they print is
in the order of the work.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor

EXTRA = ""
"""Changed by a test: a prompt that was edited."""


def post(messages: list[object], scenario: str = "plan") -> dict[str, object]:
    url = os.environ["MODEL_URL"].replace("/plan", f"/{scenario}") + "/v1/chat/completions"
    data = json.dumps({"model": "m", "messages": messages}).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def talk(name: object) -> str:
    """A conversation of two turns; its ids tell whose answers it got."""
    time.sleep(random.random() * 0.05)
    extra = EXTRA if name == "b" else ""
    question = f'{extra}Question {name}. PLAN [[["lookup", {{"question": "{name}"}}]]]'
    messages: list[object] = [{"role": "user", "content": question}]
    first = post(messages)
    message = first["choices"][0]["message"]  # type: ignore[index]
    results = [
        {"role": "tool", "tool_call_id": use["id"], "content": f"seen {name}"}
        for use in message["tool_calls"]
    ]
    time.sleep(random.random() * 0.02)
    last = post([*messages, message, *results])
    return f"{name}: {first['id']} {last['id']}"


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True)


def output(child: subprocess.Popen[str]) -> str:
    return child.communicate()[0].strip()


def pair() -> None:
    children = [start("talk", "a"), start("talk", "b")]
    print(talk("parent"), *map(output, children), sep="\n")


def pool(method: str) -> None:
    with multiprocessing.get_context(method).Pool(3) as workers:
        print(*workers.map(talk, range(6), chunksize=1), sep="\n")


def executor(method: str) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as workers:
        print(*workers.map(talk, range(4)), sep="\n")


def by_hand() -> None:
    printed = [talk("before")]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, talk("child").encode())
        os._exit(0)
    printed.append(talk("beside"))
    os.waitpid(child, 0)
    print(*printed, os.read(reading, 1000).decode(), sep="\n")


def nested() -> None:
    print(output(start("below", "2")))


def below(left: str) -> None:
    if left != "0":
        deeper = start("below", str(int(left) - 1))
        print(talk(f"level-{left}"))
        print(output(deeper))
    print(talk(f"leaving-{left}"))


def killed() -> None:
    child = start("hangs")
    assert child.stdout is not None
    printed = child.stdout.readline().strip()
    time.sleep(0.3)
    child.send_signal(signal.SIGKILL)
    print(printed, child.wait(), talk("survivor"), sep="\n")


def hangs() -> None:
    print(talk("doomed"), flush=True)
    post([{"role": "user", "content": "Say nothing."}], "silent")


SHAPES = {"pair": pair, "by_hand": by_hand, "nested": nested, "killed": killed, "hangs": hangs}

if __name__ == "__main__":
    shape, *words = sys.argv[1:]
    if shape == "talk":
        print(talk(words[0]))
    elif shape == "below":
        below(words[0])
    elif shape.partition("-")[0] in ("pool", "executor"):
        kind, _, method = shape.partition("-")
        {"pool": pool, "executor": executor}[kind](method)
    else:
        SHAPES[shape]()
