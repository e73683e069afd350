"""The second article's questions to a run that failed last night, typed as it types them."""

from reenact import Debugger

dbg = Debugger.load("runs/run-20260524.jsonl")

print(f"Total events: {dbg.count()}")
for event_type, count in dbg.event_counts().items():
    print(f"  {event_type}: {count}")

for event in dbg.where(event_type="tool.called"):
    print(f"[{event.timestamp}] {event.tool_name}({event.args})")

failure = dbg.first(event_type="tool.result", where=lambda e: e.error is not None)
if failure:
    print(f"First failure: {failure.tool_name} at {failure.timestamp}")
    print(f"Error: {failure.error}")
    context = dbg.before(failure, event_type="model.response", n=1)
    print(f"Last model response: {context[0].content[:200]}")
    prompt = dbg.before(failure, event_type="model.request", n=1)
    print(f"Prompt: {len(dbg.context_at(prompt[0]))} messages, index {prompt[0].index}")
    print(f"Next: {dbg.after(failure, event_type='model.request', n=1)[0].index}")

for event in dbg.all():
    print(event.summary())
