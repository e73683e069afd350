"""The second article's helper around tools, and its writer callback in place of a file."""

from typing import Any

from reenact import Tap

tool_registry = {"add": lambda a, b: a + b, "search": lambda q: 1 / 0}


def run_tool_with_tap(tap: Tap, tool_name: str, args: dict[str, Any]) -> Any:
    tap.record_tool_call(tool_name=tool_name, args=args)
    try:
        result = tool_registry[tool_name](**args)
        tap.record_tool_result(tool_name=tool_name, result=result, error=None)
        return result
    except Exception as exc:
        tap.record_tool_result(tool_name=tool_name, result=None, error=str(exc))
        raise


tap = Tap(output_path="runs/run-20260524.jsonl")
print(run_tool_with_tap(tap, "add", {"a": 1, "b": 2}))
try:
    run_tool_with_tap(tap, "search", {"q": "Q1 revenue"})
except ZeroDivisionError as exc:
    print("raised", exc)

shipped: list[dict[str, Any]] = []
to_callback = Tap(writer=shipped.append)
run_tool_with_tap(to_callback, "add", {"a": 2, "b": 2})
print([event["kind"] for event in shipped])


def broken(event: dict[str, Any]) -> None:
    raise RuntimeError("log service is down")


print(run_tool_with_tap(Tap(writer=broken), "add", {"a": 3, "b": 3}))
