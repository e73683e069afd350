"""A tool of Strands that is a module of the program."""

from __future__ import annotations

from typing import Any

import work

COUNT = {"type": "object", "properties": {"count": {"type": "string"}}, "required": ["count"]}
TOOL_SPEC = {"name": "hills", "description": "Count hills.", "inputSchema": {"json": COUNT}}


def hills(tool: dict[str, Any], **state: Any) -> dict[str, Any]:
    work.effect("hills")
    text = f"{int(tool['input']['count']) * 2} hills"
    return {"toolUseId": tool["toolUseId"], "status": "success", "content": [{"text": text}]}
