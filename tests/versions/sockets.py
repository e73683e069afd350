"""websockets: a socket of each kind, to a server of this process; the second answer of each is given up."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from websockets.asyncio.client import connect as connect_async
from websockets.sync.client import connect
from websockets.sync.server import serve

ASK = json.dumps({"type": "response.create", "model": "m", "input": "Seven hills?"})


def talk(socket: Any) -> None:
    for number, _ in enumerate(socket):
        begun = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
        done = {**begun, "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 2}}
        socket.send(json.dumps({"type": "response.created", "response": begun}))
        socket.send(json.dumps({"type": "response.completed", "response": done}))


def one(url: str) -> None:
    with connect(url) as socket:
        socket.send(ASK)
        print(socket.recv(), socket.recv())
        socket.send(ASK)
        print(socket.recv())


async def another(url: str) -> None:
    async with connect_async(url) as socket:
        await socket.send(ASK)
        print(await socket.recv(), await socket.recv())
        await socket.send(ASK)
        print(await socket.recv())


with serve(talk, "127.0.0.1", 0) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/v1/responses"
    one(place)
    asyncio.run(another(place))
    server.shutdown()
