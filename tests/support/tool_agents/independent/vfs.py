# file assistant over an in-memory file tree
# written in an afternoon: bare decorator that wraps (no functools.wraps), globals, positional calls
import json, os
from functools import singledispatch
import urllib.request

FILES = {"/notes/a.txt": b"alpha\nbeta\n", "/notes/b.txt": b"gamma\n", "/img/logo.png": b"\x89PNG\xff"}
TOOLS, SPEC = {}, []


class ToolError:
    def __init__(self, e):
        self.kind = e.__class__.__name__
        self.msg = str(e.args[0]) if e.args else ""


class Listing(list):
    pass


def tool(f):
    name = f.__name__
    argnames = f.__code__.co_varnames[: f.__code__.co_argcount]
    defaults = dict(zip(reversed(argnames), reversed(f.__defaults__ or ())))

    def inner(*a, **k):
        open_log = open("effects.txt", "a")
        open_log.write(name + "\n")
        open_log.close()
        try:
            return f(*a, **k)
        except Exception as e:
            return ToolError(e)

    inner.argnames, inner.defaults = argnames, defaults
    TOOLS[name] = inner
    SPEC.append(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f.__doc__ or "",
                "parameters": {
                    "type": "object",
                    "properties": {x: {} for x in argnames},
                    "required": [x for x in argnames if x not in defaults],
                },
            },
        }
    )
    return inner


@tool
def ls(folder="/"):
    "list files below a folder"
    return Listing(sorted(p for p in FILES if p.startswith(folder)))


@tool
def cat(path):
    "content of a file"
    return FILES[path]


@tool
def write(path, text, append=False):
    "write a file"
    old = FILES.get(path, b"") if append else b""
    FILES[path] = old + text.encode()
    return len(FILES[path])


@tool
def mv(src, dst):
    if dst in FILES:
        raise OSError("target exists: " + dst)
    FILES[dst] = FILES.pop(src)


@tool
def wc(path):
    "lines, words, bytes"
    data = cat(path)  # the wrapped one
    return {"lines": data.count(b"\n"), "words": len(data.split()), "bytes": len(data)}


@singledispatch
def show(x):
    return str(x)


@show.register
def _(x: bytes):
    return x.decode("utf-8", "backslashreplace").strip()


@show.register
def _(x: Listing):
    return " ".join(x) or "(empty)"


@show.register
def _(x: dict):
    return ", ".join(f"{v} {k}" for k, v in x.items())


@show.register
def _(x: ToolError):
    return f"!! {x.kind}: {x.msg}"


@show.register
def _(x: None.__class__):
    return "done"


def llm(msgs):
    r = urllib.request.Request(
        os.environ["MODEL_URL"] + "/v1/chat/completions",
        headers={"Content-Type": "application/json"},
        data=json.dumps({"model": "m", "messages": msgs, "tools": SPEC}).encode(),
    )
    return json.loads(urllib.request.urlopen(r).read())["choices"][0]["message"]


msgs = [
    {
        "role": "user",
        "content": """PLAN [
  [["ls", {"folder": "/notes"}], ["cat", {"path": "/img/logo.png"}]],
  [["cat", {"path": "/notes/zzz.txt"}]],
  [["write", {"path": "/notes/a.txt", "text": "delta\\n", "append": true}], ["write", {"text": "né", "path": "/new"}]],
  [["mv", {"src": "/new", "dst": "/notes/b.txt"}], ["mv", {"src": "/new", "dst": "/old"}]],
  [["wc", {"path": "/notes/a.txt"}]]
]""",
    }
]

while 1:
    m = llm(msgs)
    msgs.append(m)
    if not m.get("tool_calls"):
        print(m["content"])
        break
    for c in m["tool_calls"]:
        fn = TOOLS[c["function"]["name"]]
        kw = json.loads(c["function"]["arguments"])
        pos = [kw[a] if a in kw else fn.defaults[a] for a in fn.argnames]
        out = show(fn(*pos))
        print("$", c["function"]["name"], *pos[:1], "#", out.replace("\n", "\\n"))
        msgs.append(dict(role="tool", tool_call_id=c["id"], content=out))
