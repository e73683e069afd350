"""The tool runner of the anthropic SDK."""

from __future__ import annotations

from typing import Any

import work
from anthropic import Anthropic, beta_tool


def tools(url: str) -> str:
    functions: list[Any] = [beta_tool(each) for each in (work.lookup, work.burn, work.price)]
    runner = Anthropic(base_url=url, api_key="none").beta.messages.tool_runner(
        model="claude-scripted",
        max_tokens=99,
        system=work.WORK,
        messages=[{"role": "user", "content": work.QUESTION}],
        tools=functions,
        thread=False,  # the scripted model keeps no conversation
    )
    return "".join(block.text for block in runner.until_done().content if block.type == "text")


if __name__ == "__main__":
    work.main({"tools": tools})
