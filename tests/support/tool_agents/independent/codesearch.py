"""Code search agent; the tools are configured by dotted names and imported when first needed."""

import importlib
import json
import os
import re
import types
import urllib.error
import urllib.request

CONFIG = """
[model]
name = m

[tools]
grep     = codesearch_tools:grep              | pattern:string glob:string?
read     = codesearch_tools:read              | path:string start:integer? end:integer?
replace  = codesearch_tools:Editor.replace    | path:string old:string new:string
history  = codesearch_tools:Editor.history    |
"""

STEPS = [
    [["grep", {"pattern": "greet"}], ["grep", {"pattern": r"^def \w+", "glob": "*.py"}]],
    [["read", {"path": "app/util.py", "start": 1, "end": 2}], ["read", {"path": "app/missing.py"}]],
    [
        ["replace", {"path": "app/util.py", "old": "print(text)", "new": "print(text.upper())"}],
        ["replace", {"path": "README.md", "old": "xyz", "new": "abc"}],
    ],
    [["grep", {"pattern": "(unclosed"}]],
    [["history", {}]],
]


def load_config(text):
    section, conf = None, {}
    for line in text.splitlines():
        if m := re.fullmatch(r"\[(\w+)\]", line.strip()):
            section = conf.setdefault(m[1], {})
        elif "=" in line:
            key, value = line.split("=", 1)
            section[key.strip()] = value.strip()
    return conf


def resolve(dotted):
    module, _, path = dotted.partition(":")
    target = importlib.import_module(module)
    for part in path.split("."):
        target = getattr(target, part)
    return target


class ToolTable(dict):
    """name -> (dotted name, parameters); looking up a tool imports it."""

    def __init__(self, lines):
        for name, line in lines.items():
            dotted, _, params = line.partition("|")
            self[name] = (dotted.strip(), params.split())

    def specs(self):
        for name, (_, params) in self.items():
            pairs = [p.rstrip("?").split(":") for p in params]
            yield {
                "type": "function",
                "function": {
                    "name": name,
                    "parameters": {
                        "type": "object",
                        "properties": {k: {"type": v} for k, v in pairs},
                        "required": [p.split(":")[0] for p in params if not p.endswith("?")],
                    },
                },
            }

    def call(self, name, kwargs):
        result = resolve(self[name][0])(**kwargs)
        if isinstance(result, types.GeneratorType):
            result = list(result)
        return result


def ask(model, messages, specs):
    req = urllib.request.Request(
        os.environ["MODEL_URL"] + "/v1/chat/completions",
        data=json.dumps({"model": model, "messages": messages, "tools": specs}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(req) as resp:
            return json.loads(resp.read().decode())["choices"][0]["message"]
    except urllib.error.HTTPError as e:
        raise SystemExit(f"model said {e.code}")


def main():
    conf = load_config(CONFIG)
    table = ToolTable(conf["tools"])
    specs = list(table.specs())
    messages = [{"role": "user", "content": "PLAN " + json.dumps(STEPS)}]
    turn = 0
    while "tool_calls" in (msg := ask(conf["model"]["name"], messages, specs)) and msg["tool_calls"]:
        turn += 1
        messages.append(msg)
        for call in msg["tool_calls"]:
            name = call["function"]["name"]
            try:
                result = table.call(name, json.loads(call["function"]["arguments"]))
            except Exception as e:
                result = f"{name} failed ({type(e).__mro__[1].__name__}): {e}"
            text = "\n".join(result) if isinstance(result, list) else str(result)
            print(f"--- {turn} {name}\n{text}")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    print("===", msg["content"])


if __name__ == "__main__":
    main()
