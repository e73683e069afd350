"""LangGraph: a graph of one's own, a subgraph as a node, a subgraph in a tool, and branches side by side."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import work
from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send
from work import HILLS, LISBON, QUESTION, SEA, plan

ASK: Any = {"messages": [("user", QUESTION)]}


def chat(url: str) -> Any:
    return work.hand(ChatOpenAI(model=work.MODEL, base_url=f"{url}/v1", api_key="none"))


def looping(model: Any, prompt: str, tools: list[Any]) -> Any:
    """A model and its tools, in a circle."""
    asking = model.bind_tools(tools)

    def ask(state: Any) -> Any:
        return {"messages": [asking.invoke([SystemMessage(prompt), *state["messages"]])]}

    async def aask(state: Any) -> Any:
        return {"messages": [await asking.ainvoke([SystemMessage(prompt), *state["messages"]])]}

    from langchain_core.runnables import RunnableLambda

    built = StateGraph(MessagesState)
    built.add_node("model", RunnableLambda(ask, aask))
    built.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    built.add_edge(START, "model")
    built.add_conditional_edges("model", tools_condition)
    built.add_edge("tools", "model")
    return built.compile()


def answer(state: Any) -> str:
    return str(state["messages"][-1].text)


def failing(url: str) -> str:
    return answer(looping(chat(url), work.FAILING, [work.lookup, work.burn]).invoke(ASK))


def events(url: str) -> str:
    async def run() -> str:
        graph = looping(chat(url), work.PARALLEL, [work.lookup, work.book])
        pieces = graph.astream_events(ASK, version="v2")
        return "|".join(
            [each["data"]["chunk"].text async for each in pieces if "chat_model_stream" in each["event"]]
        )

    return asyncio.run(run())


def subgraph(url: str) -> str:
    """A finder and a clerk, each a graph, one after the other: the clerk begins anew."""
    finder = looping(chat(url), plan([HILLS], [SEA]), [work.lookup])
    clerk = looping(chat(url), plan([LISBON]), [work.book])
    outer = StateGraph(MessagesState)
    outer.add_node("finder", finder)
    outer.add_node("clerk", lambda state: {"messages": [clerk.invoke(ASK)["messages"][-1]]})
    outer.add_edge(START, "finder")
    outer.add_edge("finder", "clerk")
    outer.add_edge("clerk", END)
    return answer(outer.compile().invoke(ASK))


def nested(url: str) -> str:
    """A tool that is an agent."""
    finder = looping(chat(url), plan([HILLS], [SEA]), [work.lookup])

    def find(wish: str) -> str:
        """Find a city."""
        found = answer(finder.invoke({"messages": [("user", wish)]}))
        work.say(tool="find", args={"wish": wish}, result=found)
        return found

    prompt = plan([("find", {"wish": "hills"})], [LISBON])
    return answer(looping(chat(url), prompt, [find, work.book]).invoke(ASK))


class Trips(TypedDict):
    answers: Annotated[list[str], operator.add]


def branches(url: str) -> str:
    """Three agents side by side, in threads."""
    names = ("Lisbon", "Porto", "Faro")
    agents = {
        city: looping(
            chat(url), plan([HILLS], [("book", {"city": city, "nights": 1})]), [work.lookup, work.book]
        )
        for city in names
    }
    outer = StateGraph(Trips)
    outer.add_node("travel", lambda city: {"answers": [city + answer(agents[city].invoke(ASK))]})
    outer.add_conditional_edges(START, lambda state: [Send("travel", city) for city in names], ["travel"])
    return str(outer.compile().invoke({"answers": []})["answers"])


def tools(url: str) -> str:
    return answer(looping(chat(url), work.WORK, [work.lookup, work.burn, work.price]).invoke(ASK))


if __name__ == "__main__":
    work.main(
        {
            "failing": failing,
            "events": events,
            "subgraph": subgraph,
            "nested": nested,
            "branches": branches,
            "tools": tools,
        }
    )
