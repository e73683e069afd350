"""Which agents are played in which environment, and what is to be expected of each."""

from __future__ import annotations

import os
from dataclasses import dataclass

ENVIRONMENT = os.environ.get("REENACT_FRAMEWORKS", "")
"""The environment this is: frameworks over openai 2.x, the newest ones over openai 3.x, or CrewAI, which lives alone."""


@dataclass(frozen=True, slots=True)
class Case:
    """One agent of a script."""

    name: str
    lanes: int = 1
    """How many agents are at work beside or below one another."""
    at_once: bool = False
    """True if its tools or agents run side by side, so that their order is not fixed."""
    words: str = "plan"
    """The scenario."""
    exit: int = 0
    flags_errors: bool = False
    """True where the wire says that a tool failed, and not only its text."""


@dataclass(frozen=True, slots=True)
class Framework:
    """A script and its cases; they run one after another in one process, since importing takes seconds."""

    name: str
    script: str
    package: str
    cases: tuple[Case, ...]
    is_wrapped: bool = True
    """False where there is no client to hand to `tap.wrap`."""
    tools_are_text: bool = False
    """True where results go back to the model as text in a user's message, which no tool call can be told from."""
    own_tools: tuple[str, ...] = ()
    """Tools of the framework that an agent calls; they run again, and have to be allowed."""

    def __str__(self) -> str:
        return self.name


RETRIED = Case("retried", words="plan,status-429,times-1")
LANGCHAIN = Framework(
    "langchain",
    "langchain_agent.py",
    "langchain",
    (
        Case("sync"),
        Case("responses"),
        Case("parallel", at_once=True),
        Case("streamed"),
        RETRIED,
        Case("claude", flags_errors=True),
        Case("claude-streamed", at_once=True),
    ),
)
LANGGRAPH = Framework(
    "langgraph",
    "langgraph_agent.py",
    "langgraph",
    (
        Case("failing"),
        Case("events", at_once=True),
        Case("subgraph"),
        Case("nested", lanes=2),
        Case("branches", lanes=3, at_once=True),
    ),
)
OPENAI_AGENTS = Framework(
    "openai-agents",
    "openai_agents.py",
    "openai-agents",
    (
        Case("sync"),
        Case("parallel", at_once=True),
        Case("failing"),
        RETRIED,
        Case("handoff"),
        Case("nested", lanes=3, at_once=True),
        Case("gathered", lanes=4, at_once=True),
        Case("traced"),
    ),
)
PYDANTIC_AI = Framework(
    "pydantic-ai",
    "pydantic_agent.py",
    "pydantic-ai-slim",
    (
        Case("sync"),
        Case("parallel", at_once=True),
        Case("streamed"),
        Case("stepwise"),
        Case("nested", lanes=2),
        Case("dying", exit=1),
    ),
)
LITELLM = Framework(
    "litellm",
    "litellm_agent.py",
    "litellm",
    (
        Case("sync"),
        Case("streamed"),
        Case("parallel"),
        RETRIED,
        Case("claude"),
        Case("claude-streamed"),
    ),
    is_wrapped=False,
)
SMOLAGENTS = Framework(
    "smolagents",
    "smol_agent.py",
    "smolagents",
    (
        Case("sync"),
        Case("parallel", at_once=True),
        Case("streamed"),
        Case("failing"),
        Case("exhausted"),
        Case("team", lanes=2),
    ),
    tools_are_text=True,
    own_tools=("final_answer",),
)
CREWAI = Framework(
    "crewai",
    "crew_agent.py",
    "crewai",
    (Case("sync"), Case("failing"), Case("async"), Case("streamed"), Case("team", lanes=1)),
    is_wrapped=False,
)
AGNO = Framework("agno", "agno_agent.py", "agno", ())
STRANDS = Framework("strands", "strands_agent.py", "strands-agents", ())
AUTOGEN = Framework("autogen", "autogen_agent.py", "autogen-agentchat", ())
HAYSTACK = Framework("haystack", "haystack_agent.py", "haystack-ai", ())
LLAMA_INDEX = Framework("llama-index", "llama_index_agent.py", "llama-index-core", ())
ANTHROPIC = Framework("anthropic-runner", "anthropic_runner.py", "anthropic", ())
ENVIRONMENTS = {
    "openai-2": (LANGCHAIN, LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI, LITELLM, SMOLAGENTS),
    "newest": (LANGCHAIN, LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI, SMOLAGENTS),
    "crewai": (CREWAI,),
}
HERE = ENVIRONMENTS.get(ENVIRONMENT, ())
TOOLS_HERE = {
    "openai-2": (LITELLM,),
    "newest": (*ENVIRONMENTS["newest"], AGNO, STRANDS, AUTOGEN, HAYSTACK, LLAMA_INDEX, ANTHROPIC),
    "crewai": (CREWAI,),
}.get(ENVIRONMENT, ())
"""The frameworks whose tools are measured here: each in one environment, the newest that has it."""

PAGES = {
    "openai-2": ("litellm", "llama-index"),
    "newest": (
        *(
            "agno",
            "anthropic",
            "autogen",
            "haystack",
            "langchain",
            "langgraph",
            "openai-agents",
            "pydantic-ai",
        ),
        *("smolagents", "strands"),
    ),
    "crewai": ("crewai",),
}
"""The pages of docs/frameworks that are followed in each environment."""
