"""reenact fork of agents that ask their model over a socket: answered up to the cut, and then the real server."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from support.forked import type_in

RESPONSES = """
import os
import openai

client = openai.OpenAI(base_url=os.environ["SOCKET"], api_key="k")
previous = None
with client.responses.connect() as connection:
    for number in range(3):
        more = {"previous_response_id": previous} if previous else {}
        connection.response.create(model="gpt-5", instructions="S", input=f"ask {number}", **more)
        for event in connection:
            if event.type == "response.completed":
                break
        previous = event.response.id
        print(number, previous, event.response.output_text)
"""
PLAIN = """
import json, os
from websockets.sync.client import connect

previous, store = None, {"store": False} if os.environ.get("STORE") == "no" else {}
with connect(os.environ["SOCKET"].replace("http", "ws") + "/responses") as socket:
    for number in range(3):
        more = store | ({"previous_response_id": previous} if previous else {})
        socket.send(json.dumps({"type": "response.create", "model": "m", "input": f"ask {number}", **more}))
        while (event := json.loads(socket.recv()))["type"] != "response.completed":
            pass
        done = event["response"]
        previous = done["id"]
        print(number, previous, done["output"][0]["content"][0]["text"])
"""
REALTIME = """
import asyncio, json, os
from websockets.asyncio.client import connect

async def main():
    for talk in range(2):
        async with connect(os.environ["SOCKET"].replace("http", "ws") + "/realtime?model=m") as socket:
            async def say(kind, **more):
                await socket.send(json.dumps({"type": kind, **more}))

            async def receive():
                return json.loads(await socket.recv())

            print((await receive())["session"]["id"])
            await say("session.update", session={"type": "realtime", "instructions": "Briefly."})
            print((await receive())["type"])
            for number in range(2):
                content = [{"type": "input_text", "text": f"ask {talk} {number}"}]
                await say("conversation.item.create", item={"type": "message", "role": "user", "content": content})
                await say("response.create", response={"instructions": "S"})
                while (event := await receive())["type"] != "response.done":
                    pass
                print(event["response"]["id"], (await receive())["type"])

asyncio.run(main())
"""


class Server:
    """A model's API over sockets; ``received`` is what each connection sent."""

    def __init__(self) -> None:
        self.received: list[list[dict[str, Any]]] = []
        self.prefix = "then"

    def talk(self, socket: ServerConnection) -> None:
        received: list[dict[str, Any]] = []
        self.received.append(received)
        is_realtime = "/realtime" in (socket.request.path if socket.request else "")
        name = f"{self.prefix}-{len(self.received)}"

        def say(kind: str, **more: Any) -> None:
            socket.send(json.dumps({"type": kind, "event_id": "e", **more}))

        if is_realtime:
            say("session.created", session={"id": f"session-{name}", "type": "realtime"})
        for message in socket:
            request = json.loads(message)
            received.append(request)
            if request["type"] == "session.update":
                say("session.updated", session={"id": f"session-{name}", "type": "realtime"})
            if request["type"] != "response.create":
                continue
            text = [{"type": "output_text", "text": f"told {name}", "annotations": []}]
            output = [
                {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": text}
            ]
            fixed = {"object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True}
            fixed |= {"tool_choice": "auto", "tools": [], "status": "completed"}
            number = sum(each["type"] == "response.create" for each in received)
            done = {"id": f"r-{name}-{number}", **fixed, "output": [] if is_realtime else output}
            say("response.done" if is_realtime else "response.completed", sequence_number=1, response=done)
            if is_realtime:
                say("rate_limits.updated", rate_limits=[])


class Desk:
    """A folder with two recorded agents, and their server."""

    def __init__(self, folder: Path, server: Server, port: int) -> None:
        self.folder, self.server = folder, server
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env = {**clean, "SOCKET": f"http://127.0.0.1:{port}/v1"}
        self.first = {}
        for name, agent in (("responses", RESPONSES), ("plain", PLAIN), ("realtime", REALTIME)):
            (folder / f"{name}.py").write_text(agent)
            self.first[name] = self("run", "--name", name, f"{name}.py")
            assert self.first[name].returncode == 0, self.first[name].stderr

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, {**self.env, **env}, session=True)

    def fork(self, run: str, *words: str, **env: str) -> tuple[list[str], list[list[dict]], Any]:
        """Fork it; returns the lines of its output, and what the server heard."""
        self.server.received, self.server.prefix = [], "now"
        done = self("fork", run, *words, "--", f"{run}.py", **env)
        return done.stdout.splitlines(), self.server.received, done


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    server = Server()
    with serve(server.talk, "127.0.0.1", 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield Desk(tmp_path_factory.mktemp("sockets"), server, serving.socket.getsockname()[1])
        serving.shutdown()


@pytest.mark.long
def test_a_socket_goes_live_at_the_cut_with_the_edited_request(desk: Desk) -> None:
    printed, received, done = desk.fork("responses", "--at", "turn:2", "--set", "instructions=New.")
    assert done.returncode == 0, done.stderr
    assert printed[0] == desk.first["responses"].stdout.splitlines()[0]
    assert printed[1:] == ["1 r-now-1-1 told now-1", "2 r-now-1-2 told now-1"]
    (requests,) = received
    assert [each["input"] for each in requests] == ["ask 1", "ask 2"]
    assert [each["previous_response_id"] for each in requests] == ["r-then-1-1", "r-now-1-1"]
    assert {each["instructions"] for each in requests} == {"New."}
    sent = [
        json.loads(line)
        for line in desk("cat", "@fork", "--full", "--kind", "model.request").stdout.splitlines()
    ]
    assert [each["body"]["instructions"] for each in sent] == ["S", "New.", "New."]


def test_a_fork_from_the_beginning_and_one_with_an_answer_of_one_s_own(desk: Desk) -> None:
    printed, received, done = desk.fork("plain")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in printed] == ["r-now-1-1", "r-now-1-2", "r-now-1-3"] and len(
        received
    ) == 1
    printed, received, done = desk.fork("plain", "--at", "turn:3", "--response", "Mine.")
    assert (done.returncode, received) == (0, []), done.stderr
    assert printed[:2] == desk.first["plain"].stdout.splitlines()[:2] and printed[2].endswith("Mine.")


@pytest.mark.long
def test_what_only_a_connection_keeps_cannot_go_live_in_its_middle(desk: Desk) -> None:
    assert desk("run", "--name", "unstored", "plain.py", STORE="no").returncode == 0
    desk.server.received = []
    done = desk("fork", "unstored", "--at", "turn:2", "--", "plain.py", STORE="no")
    assert (done.returncode, desk.server.received) == (1, []), done.stderr
    assert "stopped: a WebSocket cannot go live here: it continues a response that only" in done.stderr
    _, received, done = desk.fork("realtime", "--at", "turn:2")
    assert (done.returncode, received) == (1, []), done.stderr
    assert (
        "the server's side of the connection keeps earlier messages" in done.stderr
        and "hint: cut at the first" in done.stderr
    )


@pytest.mark.long
def test_a_session_goes_live_at_its_first_request(desk: Desk) -> None:
    then = desk.first["realtime"].stdout.splitlines()
    printed, received, done = desk.fork("realtime", "--at", "turn:1", "--set", "instructions=New.")
    assert done.returncode == 0, done.stderr
    assert printed[:2] == then[:2]  # the greeting of then, since the session began before the cut
    assert printed[2:4] == ["r-now-1-1 rate_limits.updated", "r-now-1-2 rate_limits.updated"]
    assert printed[4:6] == ["session-now-2", "session.updated"]  # another session is real from its beginning
    types = ["session.update", *["conversation.item.create", "response.create"] * 2]
    assert [[each["type"] for each in one] for one in received] == [types, types]
    assert {each["response"]["instructions"] for one in received for each in one if "response" in each} == {
        "New."
    }
    printed, received, done = desk.fork("realtime", "--at", "turn:3")
    assert done.returncode == 0, done.stderr
    assert printed[:6] == then[:6] and printed[6].startswith("r-now-1-1") and len(received) == 1


@pytest.mark.long
def test_what_a_server_sends_unrequested_is_sent_again_in_its_place(desk: Desk) -> None:
    reported = [
        json.loads(line) for line in desk("cat", "realtime", "--kind", "socket.message").stdout.splitlines()
    ]
    kinds = ["session.created", "session.updated", "rate_limits.updated", "rate_limits.updated"]
    assert [each["body"]["type"] for each in reported] == kinds * 2
    assert [(each["asked"], each["sent"]) for each in reported[:4]] == [(0, 0), (0, 1), (1, 2), (2, 3)]
    desk.server.received = []
    for run in ("realtime", "plain"):
        again = desk("replay", run)
        assert (again.stdout, again.returncode) == (desk.first[run].stdout, 0), again.stderr
    assert desk.server.received == []


def test_a_server_that_is_down_at_the_cut(desk: Desk) -> None:
    printed, _, done = desk.fork("plain", "--at", "turn:2", SOCKET="http://127.0.0.1:9/v1")
    assert done.returncode == 1 and printed == desk.first["plain"].stdout.splitlines()[:1], done.stderr
    assert "ConnectionRefusedError" in done.stderr
