"""The first article's loop as a user would write it: a chat model with tools, three lines of Trace."""

import json
import sys

from lisbon_model import HANDLERS, TOOLS, client

from reenact import Trace

trace = Trace("traces/run.jsonl")
messages = [{"role": "user", "content": "Plan a 3-day trip to Lisbon under $800."}]

for turn in range(8):
    resp = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=TOOLS)
    msg = resp.choices[0].message
    trace.step(
        "llm_call", turn=turn, content=msg.model_dump(), usage=resp.usage.model_dump() if resp.usage else None
    )
    if not msg.tool_calls:
        trace.step("final", text=msg.content)
        break
    messages.append(msg)
    for tc in msg.tool_calls:
        try:
            output = HANDLERS[tc.function.name](**json.loads(tc.function.arguments))
        except Exception as e:
            output = f"error: {e}"
            trace.step("error", tool=tc.function.name, err=str(e))
        trace.step("tool_call", name=tc.function.name, args=json.loads(tc.function.arguments))
        trace.step("tool_result", id=tc.id, output=output[:4000])
        messages.append({"role": "tool", "tool_call_id": tc.id, "content": output})

trace.close()
print(
    "sent",
    len(messages),
    "messages; longest",
    max(len(m["content"]) for m in messages if isinstance(m, dict)),
)
sys.exit(0)
