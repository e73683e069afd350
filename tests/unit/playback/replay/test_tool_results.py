"""A recorded tool result given back in a test: its type, its exception, and nothing shared with the recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from reenact.playback.matching.tape import Tape
from reenact.testing import recorded, replaying, wrap


class OutOfHills(Exception):
    def __init__(self, hill: str, code: int) -> None:
        super().__init__(f"no {hill} ({code})")
        self.hill = hill


def both(tool: Any, path: Path, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Return what a tool gave when it was recorded, and what it gives in a replay, where it must not run."""
    ran: list[int] = []

    def body(*values: Any, **named: Any) -> Any:
        ran.append(1)
        return tool(*values, **named)

    body.__annotations__, body.__name__ = tool.__annotations__, tool.__name__
    watched = wrap(body)
    with recorded(path=path):
        first = watched(*args, **kwargs)
    with replaying(path):
        again = watched(*args, **kwargs)
    assert ran == [1]
    return first, again


def test_types_of_langchain_and_langgraph_come_back(tmp_path: Path) -> None:
    def message() -> ToolMessage:
        return ToolMessage("sunny", tool_call_id="c1", artifact={"degrees": 21})

    def command() -> Command[Any]:
        return Command(update={"city": "Lisbon"}, goto="book")

    def either() -> str | ToolMessage:
        return ToolMessage("sunny", tool_call_id="c1")

    for tool in (message, command, either):
        first, again = both(tool, tmp_path / f"{tool.__name__}.jsonl")
        assert again == first and type(again) is type(first)


def test_langchain_gets_the_pair_of_content_and_artifact_without_an_annotation(tmp_path: Path) -> None:
    ran: list[str] = []

    def rooms(city: str):  # type: ignore[no-untyped-def]
        """Rooms of a city."""
        ran.append(city)
        return f"2 rooms in {city}", [1, 2]

    trace, watched = tmp_path / "rooms.jsonl", wrap(rooms)
    tool = StructuredTool.from_function(watched, response_format="content_and_artifact")
    call = {"type": "tool_call", "id": "c1", "name": "rooms", "args": {"city": "Porto"}}
    with recorded(path=trace):
        first = tool.invoke(call)
    with replaying(trace):
        again = tool.invoke(call)
    assert again == first and (again.content, again.artifact) == ("2 rooms in Porto", [1, 2])
    with replaying(trace):
        assert watched("Porto") == ["2 rooms in Porto", [1, 2]]  # nobody wants a pair here
    assert ran == ["Porto"]


def test_a_recorded_exception_has_its_type_or_a_stand_in_of_that_name(tmp_path: Path) -> None:
    trace = tmp_path / "fails.jsonl"

    @wrap
    def fails(kind: str) -> str:
        if kind == "own":
            raise OutOfHills("hill", 7)
        raise type("Unheard", (ValueError,), {})("of this")

    with recorded(path=trace):
        for kind in ("own", "gone"):
            with pytest.raises(Exception, match="hill|of this"):
                fails(kind)
    with replaying(trace):
        with pytest.raises(OutOfHills, match=r"no hill \(7\)"):
            fails("own")
        with pytest.raises(Exception, match="of this") as unknown:
            fails("gone")
    assert type(unknown.value).__name__ == "Unheard"


def test_a_result_is_a_fresh_copy_each_time(tmp_path: Path) -> None:
    trace = tmp_path / "list.jsonl"
    with recorded(path=trace):
        wrap(lambda: {"rows": [1, 2]}, "rows")()
    (call,) = Tape.load(str(trace)).calls
    call.answer.body["rows"].append(3)
    assert call.answer.body == {"rows": [1, 2]}
