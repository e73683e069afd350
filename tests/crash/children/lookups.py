"""An MCP server whose one tool says that it was called, and never answers."""

import asyncio
import mmap
import sys

from mcp.server import MCPServer

server = MCPServer("lookups")


@server.tool()
async def lookup(slot: int) -> str:
    with open(sys.argv[1], "r+b") as file:
        seen = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    seen[int(sys.argv[2])] = 1 << 32
    await asyncio.sleep(600)
    return "nothing"


server.run()
