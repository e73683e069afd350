"""reenact replay and the servers of this machine: those that ran before get nothing, those that the agent starts do.
Counted at real servers."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact.playback.replay.side_effect_guard import Listening
from support.examples import long
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

AGENT = (
    POST
    + """
import os, socket, subprocess, sys, tempfile, threading
from multiprocessing.connection import Client, Listener

SERVE = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); s.accept()[0].send(b'child')"

def reach(address, family=socket.AF_INET):
    with socket.socket(family) as connection:
        connection.connect(address)
        connection.sendall(b"hello")
        return connection.recv(10).decode()

def own_thread():
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: server.accept()[0].send(b"thread")).start()
    return reach(server.getsockname())

def own_child():
    child = subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True)
    return reach(("127.0.0.1", int(child.stdout.readline())))

def own_pipe():
    with Listener(family="AF_UNIX") as listener:
        threading.Thread(target=lambda: listener.accept().send("pipe")).start()
        return Client(listener.address).recv()

def port():
    return reach(("127.0.0.1", int(os.environ["OTHER_PORT"])))

def unix():
    return reach(os.environ["OTHER_SOCKET"], socket.AF_UNIX)

def http():
    post(f"http://127.0.0.1:{os.environ['OTHER_PORT']}/pay", {"amount": 5})

def ask(text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    print(post(os.environ["MODEL_URL"] + "/v1/messages", body)["content"][0]["text"], flush=True)

ask("first")
for name in sys.argv[1:]:
    print(globals()[name](), flush=True)
ask("second")
"""
)
OWN = ("own_thread", "own_child", "own_pipe")


class Others:
    """Servers of somebody else; ``reached`` counts the connections."""

    def __init__(self, folder: Path) -> None:
        self.reached = 0
        self.path = str(folder / "s")
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(self.path)
        unix.listen()
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        self.sockets = [unix, tcp]
        for each in self.sockets:
            threading.Thread(target=self._serve, args=(each,), daemon=True).start()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            self.reached += 1
            with connection:
                connection.recv(1 << 16)
                connection.send(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{}")

    def close(self) -> None:
        for each in self.sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Others]:
    made = Others(tmp_path_factory.mktemp("o"))
    yield made
    made.close()


def typed(folder: Path, provider: Provider, others: Others):
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("text"), "XDG_STATE_HOME": str(folder / "state")}
    env |= {"OTHER_PORT": str(others.port), "OTHER_SOCKET": others.path}
    return lambda *words: type_in(words, folder, env)


@pytest.mark.parametrize("way", [long("port"), "unix", "http"])
def test_a_server_that_ran_before_gets_nothing(
    tmp_path: Path, provider: Provider, others: Others, way: str
) -> None:
    here = typed(tmp_path, provider, others)
    assert here("run", "--name", "first", "agent.py", way).returncode == 0
    assert others.reached == 1
    for words in (["replay", "first"], ["fork", "first", "--at", "turn:2", "--set", "system=x"]):
        done = here(*words)
        assert others.reached == 1 and "refused to connect to" in done.stderr, done
        assert done.returncode in (2, 3), done


def test_servers_that_the_agent_starts_itself_are_reached(
    tmp_path: Path, provider: Provider, others: Others
) -> None:
    here = typed(tmp_path, provider, others)
    first = here("run", "--name", "first", "agent.py", *OWN)
    assert first.stdout.splitlines()[1:-1] == ["thread", "child", "pipe"], first
    again = here("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr


def test_a_socket_that_follows_at_once_is_new(tmp_path: Path) -> None:
    """The clock of files lags behind the one of programs: the keeper of a fork's workspace was refused for it."""
    for number in range(100):
        (tmp_path / f"{number}").mkdir()
        before = Listening.now(str(tmp_path / f"{number}"))
        path = str(tmp_path / f"{number}" / "s")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
        assert not before.has_socket(path)
