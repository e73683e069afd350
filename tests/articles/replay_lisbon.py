"""The first article's replay: the messages of a run up to a step, to be sent into a fresh model call."""

from reenact import replay

messages = replay("traces/run.jsonl", n=3)
print([message["role"] for message in messages], [finding.code for finding in messages.findings])

question = "Plan a 3-day trip to Lisbon under $800."
for n in range(12):
    messages = replay("traces/run.jsonl", n=n, prompt=question)
    print(n, [message["role"] for message in messages], [finding.code for finding in messages.findings])

third = replay("traces/run.jsonl", turn=3, prompt=question)
print([message["role"] for message in third], len(third[-1]["content"]))
