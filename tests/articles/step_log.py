"""The third article's first example: two model calls, one tool call, a summary."""

from reenact import StepLog

log = StepLog(path="./logs/agent-steps.jsonl", run_id="run-abc123")

log.record_llm_call(model="claude-sonnet-4-6", input_tokens=1200, output_tokens=340, stop_reason="tool_use")
log.record_tool_call(
    tool="search_documents", input={"query": "Q3 revenue"}, output={"results": [...]}, duration_ms=240
)
log.record_llm_call(model="claude-sonnet-4-6", input_tokens=1600, output_tokens=180, stop_reason="end_turn")

summary = log.summarize()
print(f"Steps: {summary.total_steps}")
print(f"Total tokens: {summary.total_tokens}")
print(f"Tool calls: {summary.tool_call_count}")
print(f"Duration: {summary.duration_ms}ms")
