"""mcp 1: a tool that answers and one there is not, called of a server of this process."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import types
from mcp.server import Server
from mcp.shared.memory import create_connected_server_and_client_session

server = Server("hills")


@server.list_tools()
async def tools() -> list[types.Tool]:
    return [types.Tool(name="height", description="How high.", inputSchema={"type": "object"})]


@server.call_tool()
async def call(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    if name != "height":
        raise ValueError(f"no tool {name}")
    return [types.TextContent(type="text", text=str(len(arguments["hill"])))]


async def main() -> None:
    async with create_connected_server_and_client_session(server) as session:
        print(await session.list_tools())
        print(await session.call_tool("height", {"hill": "Graça"}))
        print(await session.call_tool("nowhere", {}))


asyncio.run(main())
