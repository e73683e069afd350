"""The third article's async agent: one log per run, named by RunContext; one run ends well, one in a tool."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from reenact import RunContext, StepLog

finished: list[dict[str, Any]] = []


def scripted(fails: bool) -> Any:
    answers = iter(
        [
            SimpleNamespace(
                stop_reason="tool_use", tool_calls=[SimpleNamespace(name="lookup", input={"fails": fails})]
            ),
            SimpleNamespace(stop_reason="end_turn", tool_calls=[]),
        ]
    )

    def call_llm(messages: list[Any]) -> Any:
        answer = next(answers)
        answer.model, answer.usage = "claude-sonnet-4-6", SimpleNamespace(input_tokens=10, output_tokens=5)
        return answer

    return call_llm


def execute_tool(name: str, input: dict[str, Any]) -> str:
    if input["fails"]:
        raise LookupError("nothing there")
    return "found"


async def run_agent(task: str, call_llm: Any) -> str:
    ctx = RunContext.start()
    log = StepLog(path=f"./logs/{ctx.run_id}.jsonl", run_id=str(ctx.run_id))
    messages = [{"role": "user", "content": task}]
    while True:
        response = call_llm(messages)
        log.record_llm_call(
            model=response.model,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            stop_reason=response.stop_reason,
        )
        if response.stop_reason == "end_turn":
            summary = log.summarize()
            finished.append(dict(**summary.__dict__))
            return "done"
        for tool_call in response.tool_calls:
            start = time.monotonic()
            try:
                result = execute_tool(tool_call.name, tool_call.input)
                log.record_tool_call(
                    tool=tool_call.name,
                    input=tool_call.input,
                    output=result,
                    duration_ms=(time.monotonic() - start) * 1000,
                )
            except Exception as e:
                log.record_tool_call(
                    tool=tool_call.name,
                    input=tool_call.input,
                    error=str(e),
                    duration_ms=(time.monotonic() - start) * 1000,
                )
                raise


print(asyncio.run(run_agent("good", scripted(False))))
try:
    asyncio.run(run_agent("bad", scripted(True)))
except LookupError as exc:
    print("raised", exc)
print(
    finished[0]["total_steps"],
    finished[0]["total_tokens"],
    finished[0]["tool_call_count"],
    finished[0]["error_count"],
)
