"""LangChain's chat models over the openai and anthropic SDKs, and a LangGraph of tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import ONLY_OK, Site, case, needs

OPENAI = "langchain-openai"
ANTHROPIC = "langchain-anthropic"
for sdk in (OPENAI, ANTHROPIC):
    needs(sdk, "langchain_openai", "langchain_anthropic", "langgraph")
ASK = "Which city has seven hills?"


def forget_clients() -> None:
    """LangChain keeps its asynchronous clients for the whole process; ours is a new loop each time."""
    from langchain_anthropic import _client_utils as anthropic_clients
    from langchain_openai.chat_models import _client_utils as openai_clients

    anthropic_clients._get_default_async_httpx_client.cache_clear()
    openai_clients._cached_async_httpx_client.cache_clear()


def model_of(sdk: str, site: Site) -> Any:
    forget_clients()
    common: dict[str, Any] = {"api_key": "none", "timeout": site.timeout, "max_retries": site.retries}
    if sdk == OPENAI:
        from langchain_openai import ChatOpenAI

        return site.client(ChatOpenAI(model="gpt-scripted", base_url=f"{site.url}/v1", **common))
    from langchain_anthropic import ChatAnthropic

    return site.client(ChatAnthropic(model="claude-scripted", base_url=site.url, max_tokens=64, **common))


def lookup(question: str) -> str:
    """Look it up."""
    return f"high: {question}"


def graph(model: Any) -> Any:
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    asking = model.bind_tools([lookup])
    built = StateGraph(MessagesState)
    built.add_node("model", lambda state: {"messages": [asking.invoke(state["messages"])]})
    built.add_node("tools", ToolNode([lookup]))
    built.add_edge(START, "model")
    built.add_conditional_edges("model", tools_condition)
    built.add_edge("tools", "model")
    return built.compile()


def chat_model(sdk: str) -> None:
    """The cells of one provider's model."""

    @case(sdk, "invoke")
    def invoke(site: Site) -> Any:
        return model_of(sdk, site).invoke(ASK)

    @case(sdk, "invoke")
    async def ainvoke(site: Site) -> Any:
        return await model_of(sdk, site).ainvoke(ASK)

    @case(sdk, "stream")
    def stream(site: Site) -> Iterator[Any]:
        yield from model_of(sdk, site).stream(ASK)

    @case(sdk, "stream")
    async def astream(site: Site) -> AsyncIterator[Any]:
        async for chunk in model_of(sdk, site).astream(ASK):
            yield chunk

    @case(sdk, "langgraph tools", ONLY_OK, answer="tools-2")
    def tools(site: Site) -> Any:
        return graph(model_of(sdk, site)).invoke({"messages": [("user", ASK)]})

    @case(sdk, "langgraph tools", ONLY_OK, answer="parallel-2")
    async def atools(site: Site) -> Any:
        return await graph(model_of(sdk, site)).ainvoke({"messages": [("user", ASK)]})


chat_model(OPENAI)
chat_model(ANTHROPIC)
