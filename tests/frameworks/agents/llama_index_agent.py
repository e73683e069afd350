"""LlamaIndex: its function agent, over a model class of our own, since its class for OpenAI needs openai 2."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import work
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from openai import AsyncOpenAI


class Chat(FunctionCallingLLM):
    url: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=work.MODEL, is_function_calling_model=True)

    async def achat(self, messages: Any, **more: Any) -> ChatResponse:
        sent = [
            {"role": each.role.value, "content": each.content, **each.additional_kwargs} for each in messages
        ]
        async with AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none") as client:
            done = await client.chat.completions.create(model=work.MODEL, messages=sent, tools=more["tools"])
        reply = done.choices[0].message
        calls = {"tool_calls": [each.model_dump() for each in reply.tool_calls]} if reply.tool_calls else {}
        message = ChatMessage(role="assistant", content=reply.content, additional_kwargs=calls)
        return ChatResponse(message=message, raw=done)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **more: Any
    ) -> dict[str, Any]:
        new_messages = [user_msg] if user_msg else []
        return {
            "messages": [*chat_history, *new_messages],
            "tools": [tool.metadata.to_openai_tool() for tool in tools],
        }

    def get_tool_calls_from_response(
        self, response: Any, error_on_no_tool_call: bool = True, **more: Any
    ) -> Any:
        return [
            ToolSelection(
                tool_id=call["id"],
                tool_name=call["function"]["name"],
                tool_kwargs=json.loads(call["function"]["arguments"]),
            )
            for call in response.message.additional_kwargs.get("tool_calls", ())
        ]

    def _not_here(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError

    chat = complete = stream_chat = stream_complete = _not_here
    acomplete = astream_chat = astream_complete = _not_here


def tools(url: str) -> str:
    functions = [work.lookup, work.burn, work.price]

    async def run() -> str:
        agent = FunctionAgent(tools=functions, llm=Chat(url=url), system_prompt=work.WORK, streaming=False)
        return str(await agent.run(user_msg=work.QUESTION))

    return asyncio.run(run())


if __name__ == "__main__":
    work.main({"tools": tools})
