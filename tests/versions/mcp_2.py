"""mcp 2: a tool that answers and one there is not, called of a server of this process."""

from __future__ import annotations

import asyncio

from mcp.client import Client
from mcp.server import MCPServer

server = MCPServer("hills")


@server.tool()
def height(hill: str) -> int:
    return len(hill)


async def main() -> None:
    async with Client(server) as client:
        print(await client.list_tools())
        print(await client.call_tool("height", {"hill": "Graça"}))
        print(await client.call_tool("nowhere", {}))


asyncio.run(main())
