"""What servers said, in a trace that somebody else has written: no line of it raises where it is given."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, MCPError

from reenact import Recording, Tap, schema
from reenact.playback.matching.tape import Tape
from reenact.playback.replay.recorded_events import Servers
from reenact.playback.replay.responder import Sockets
from reenact.playback.serve.mcp import StandIn
from reenact.playback.serve.replies import ServerReply, ServerRequest


@pytest.mark.parametrize("number", [[1], {"a": 1}, None, 7])
@pytest.mark.parametrize("url", ["ws://[", "ws://[::1/v1/realtime", 5, None, "wss://h/v1/realtime"])
def test_sockets_of_any_name(tmp_path: Path, number: object, url: object) -> None:
    path = tmp_path / "run.jsonl"
    printed = {"asked": 0, "sent": 0, "body": {"type": "session.created"}}
    with Tap(str(path)) as tap:
        recorder = tap.recorder()
        recorder.emit(schema.SOCKET_MESSAGE, {"url": url, "socket": number, **printed})
        recorder.emit(schema.SOCKET_MESSAGE, {"url": "wss://there/v1/responses", "socket": 9, **printed})
        sockets = Sockets(Tape(Recording.load(path)))
        found = sockets.next("wss://here/v1/responses", recorder)
        assert [each.body for each in found] == [printed["body"]]
        sockets.next("ws://[", recorder)


@pytest.mark.parametrize("server", ["http://[", "https://[::1/mcp", "python 'torn", "", 5, None])
def test_servers_of_any_name(tmp_path: Path, server: object) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(str(path)) as tap:
        recorder = tap.recorder()
        recorder.emit(schema.MCP_ANSWER, {"server": server, "method": "tools/list", "result": {}})
        there = {"server": "http://there/mcp", "method": "tools/list", "result": {"tools": []}}
        recorder.emit(schema.MCP_ANSWER, there)
        servers = Servers(Tape(Recording.load(path)))
        reply = servers.reply(ServerRequest("http://here/mcp", "tools/list", None, recorder))
        assert reply is not None and reply.result == {"tools": []}
        assert not servers.has("http://[nowhere", recorder)


@pytest.mark.parametrize(
    "printed",
    [{"result": [1]}, {"result": "text"}, {"refused": {}}, {"refused": {"code": "x", "message": 5}}, {}],
    ids=str,
)
def test_whatever_a_trace_has_a_server_say_ends_no_session(tmp_path: Path, printed: dict[str, Any]) -> None:
    path = tmp_path / "run.jsonl"

    async def ask(reply: ServerReply) -> None:
        stand_in = StandIn("here", None)
        async with stand_in.connection(has_id=False) as streams, ClientSession(*streams) as session:
            for _ in range(2):
                stand_in.expect("ping", None, reply)
                with suppress(MCPError):
                    await session.send_ping()

    with Tap(str(path)) as tap:
        recorder = tap.recorder()
        recorder.emit(schema.MCP_ANSWER, {"server": "here", "method": "ping", **printed})
        request = ServerRequest("here", "ping", None, recorder)
        reply = Servers(Tape(Recording.load(path))).reply(request)
        assert reply is not None
        asyncio.run(ask(reply))
