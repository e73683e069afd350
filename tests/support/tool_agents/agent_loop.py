"""The loop of a hand-written agent: the model plans, the caller runs tools. The agents beside it differ in how
they get from a tool's name to a function."""

import json
import os
import urllib.request

PLAN = [
    [["lookup", {"city": "Oslo", "days": 2}]],
    [["book", {"hotel": "Opera"}]],
    [["lookup", {"city": "Rome", "days": 1}], ["lookup", {"city": "Bern", "days": 3}]],
]
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }
    for name, properties in {
        "lookup": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "book": {"hotel": {"type": "string"}},
    }.items()
]


def ask(messages):
    body = {"model": "m", "messages": messages, "tools": TOOLS}
    url = os.environ["MODEL_URL"] + "/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]


def shown(run, name, args):
    """What the model is sent: a result as text, or the words for any error; its cause is nowhere."""
    try:
        result = run(name, args)
    except Exception:
        return "The tool failed."
    return result if isinstance(result, str) else json.dumps(result)


def conversation(run, plan=PLAN):
    """Talk until the model is done; `run(name, args)` runs a tool."""
    messages = [{"role": "user", "content": "PLAN " + json.dumps(plan)}]
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print("said", message["content"])
            return
        for call in message["tool_calls"]:
            text = shown(run, call["function"]["name"], json.loads(call["function"]["arguments"]))
            print(call["function"]["name"], text)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
