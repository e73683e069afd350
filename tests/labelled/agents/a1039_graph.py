"""A LangGraph agent with two tools."""


def main() -> None:
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    def distance(origin: str, destination: str) -> dict:
        """Distance by road."""
        return {"km": 313}

    def toll(km: int) -> dict:
        """Toll of a distance."""
        return {"eur": 23.8}

    model = ChatOpenAI(model="gpt-5.1-mini").bind_tools([distance, toll])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([distance, toll]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    done = graph.compile().invoke({"messages": [("user", "What is the toll from Lisbon to Porto?")]})
    print(done["messages"][-1].content)


MODEL = [
    ("distance", {"origin": "Lisbon", "destination": "Porto"}),
    ("toll", {"km": 313}),
    "The toll for the 313 km from Lisbon to Porto is 23.80 EUR.",
]
LABEL = "passes"

if __name__ == "__main__":
    main()
