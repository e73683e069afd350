"""Research notes. A lead agent delegates to a librarian agent; tools are closures made by factories."""

import json
import os
import urllib.request

LIBRARIAN_PLAN = (
    'PLAN [[["lookup", {"topic": "%s"}]], [["lookup", {"topic": "phlogiston"}], ["cite", {"topic": "%s"}]]]'
)
LEAD_PLAN = "PLAN " + json.dumps(
    [
        [["save_note", {"title": "todo", "body": "tides, then eclipses"}]],
        [
            ["ask_librarian", {"topic": "tides"}],
            ["save_note", {"title": "tides", "body": "moon pulls water"}],
        ],
        [["save_note", {"title": "todo", "body": "eclipses"}], ["ask_librarian", {"topic": "eclipses"}]],
        [["list_notes", {}]],
    ]
)


def effect(name):
    with open("effects.txt", "a") as f:
        f.write(name + "\n")


def make_agent(name, tools, system):
    """tools: name -> (function, list of string parameters). Returns a function prompt -> answer."""
    spec = [
        {
            "type": "function",
            "function": {
                "name": n,
                "parameters": {
                    "type": "object",
                    "properties": {p: {"type": "string"} for p in params},
                    "required": params,
                },
            },
        }
        for n, (_, params) in tools.items()
    ]

    def complete(messages):
        data = json.dumps({"model": "m", "messages": messages, "tools": spec}).encode()
        req = urllib.request.Request(
            os.environ["MODEL_URL"] + "/v1/chat/completions",
            data=data,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(req) as r:
            return json.load(r)["choices"][0]["message"]

    def turns(prompt):
        """Yields ('tool', name, text) for every tool call and at last ('answer', name, text)."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        while True:
            reply = complete(messages)
            messages.append(reply)
            calls = reply.get("tool_calls")
            if not calls:
                yield "answer", name, reply["content"]
                return
            for call in calls:
                fn, _ = tools[call["function"]["name"]]
                try:
                    text = fn(json.loads(call["function"]["arguments"]))
                except LookupError as e:
                    text = "not found: %s" % e
                except FileExistsError as e:
                    text = "refused: %s" % e
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
                yield "tool", call["function"]["name"], text

    def run(prompt, indent=""):
        found = []
        for kind, who, text in turns(prompt):
            print(f"{indent}{name}/{who}: {text}" if kind == "tool" else f"{indent}{name} says: {text}")
            found.append(text)
        return found

    return run


def make_library(articles):
    opened = []

    def lookup(a):
        effect("lookup")
        opened.append(a["topic"])
        return articles[a["topic"]]["text"]

    def cite(a):
        effect("cite")
        return "[%d] %s" % (opened.index(a["topic"]) + 1, articles[a["topic"]]["source"])

    return {"lookup": (lookup, ["topic"]), "cite": (cite, ["topic"])}


def make_notebook():
    notes = {}

    def save_note(a):
        effect("save_note")
        if a["title"] in notes:
            raise FileExistsError(a["title"])
        notes[a["title"]] = a["body"]
        return "saved, %d notes" % len(notes)

    def list_notes(a):
        effect("list_notes")
        return "; ".join("%s=%s" % kv for kv in sorted(notes.items()))

    return {"save_note": (save_note, ["title", "body"]), "list_notes": (list_notes, [])}


def make_delegate(agent, template):
    def ask(a):
        effect("ask_librarian")
        found = agent(template % (a["topic"], a["topic"]), indent="    ")
        return " / ".join(found[:-1])

    return (ask, ["topic"])


library = make_library(
    {
        "tides": {"text": "Tides follow the moon.", "source": "Newton 1687"},
        "eclipses": {"text": "Eclipses follow the saros.", "source": "Halley 1691"},
    }
)
librarian = make_agent("librarian", library, "You look things up.")
lead = make_agent(
    "lead",
    {**make_notebook(), "ask_librarian": make_delegate(librarian, LIBRARIAN_PLAN)},
    "You write research notes.",
)

if __name__ == "__main__":
    lead(LEAD_PLAN)
