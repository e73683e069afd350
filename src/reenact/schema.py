"""THE event schema: version, envelope, kinds, and how a line's shape decides what it is.

Used by the writer and the reader alike; pure data and pure functions, no I/O.
The normative text is docs/format.md.
"""

VERSION = "1.1"
"""major.minor. A reader refuses only an unknown major."""

READ = ("1.0", VERSION)
"""The versions so far; what a newer minor one adds is skipped."""

ENVELOPE = ("ts", "run", "w", "step", "kind")
"""First in every line, in this order."""

RESERVED = frozenset(ENVELOPE) | {
    "v", "call", "lane", "parent", "tot", "base", "keep", "n", "chain", "fields",
}  # fmt: skip
"""Top-level names a user's own field may not take; such fields go under "fields"."""

RUN_START, RUN_MORE, RUN_END = "run.start", "run.more", "run.end"
PROC_START, PROC_END, PROC_NOTE = "proc.start", "proc.end", "proc.note"
HEADS = (RUN_START, RUN_MORE, PROC_START)
"""Every file begins with one of these, each with ``v``."""

MODEL_REQUEST, MODEL_RESPONSE = "model.request", "model.response"
TOOL_CALLED, TOOL_RESULT = "tool.called", "tool.result"
HTTP_REQUEST, HTTP_RESPONSE = "http.request", "http.response"
LLM_CALL, TOOL_CALL, OLD_TOOL_RESULT, FINAL = "llm_call", "tool_call", "tool_result", "final"
ERROR, NOTE, AMBIENT = "error", "note", "ambient"
CITATION = "citation"
MCP_ANSWER, MCP_EXIT, SOCKET_MESSAGE = "mcp.answer", "mcp.exit", "socket.message"

FOUND = "found"
"""The ``source`` of a tool call that was recorded by watching a function of the program."""
FRAMEWORKS = ("langchain", "anthropic", "openai-agents", "pydantic-ai", "agno", "strands", "autogen")
"""Other values of ``source``: the framework that knows the function, which is not found by its name."""
EFFECTS = ("pure", "read", "write", "irreversible")
"""What a tool does to the world: nothing, reads it, changes it, changes it for good. No word: not known."""

LISTS = ("messages", "input", "contents")
"""The keys of a request body that hold the conversation; ``n`` and ``chain`` speak of the first present."""


def is_bookkeeping(kind: str) -> bool:
    """True for the recorder's own lines, which are left out of counts and indexes."""
    return kind.startswith(("run.", "proc."))


def user_kind(kind: str) -> str:
    """Return the kind as written: a user's own ``run.*`` and ``proc.*`` are set apart from ours."""
    return "user." + kind if is_bookkeeping(kind) else kind


def is_finished_tool_call(fields: "dict[str, object]") -> bool:
    """True if a ``tool_call`` line is call and result in one (third article), not a begin (first)."""
    return "output" in fields or "error" in fields or "duration_ms" in fields


def event_type(kind: str, fields: "dict[str, object]") -> str:
    """Return the normalised type: ``model.request model.response tool.called tool.result`` or the kind."""
    if kind == LLM_CALL:
        return MODEL_RESPONSE
    if kind == OLD_TOOL_RESULT:
        return TOOL_RESULT
    if kind == TOOL_CALL:
        return TOOL_RESULT if is_finished_tool_call(fields) else TOOL_CALLED
    return kind
