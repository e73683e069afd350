"""The order of the source tree in numbers: ``make house``, or ``make house BEFORE=REV`` beside another commit.

Reads the tree as text and syntax, then follows a call and a few commands through it. The numbers are directions, not limits:
no test enforces them.
"""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

from support.source_tree import Tree

HERE = Path(__file__).resolve().parent.parent.parent


WALK = """
import functools, io, os, sys
from pathlib import Path
import reenact
print = functools.partial(print, file=os.fdopen(os.dup(1), "w"), flush=True)  # commands may close the first
ours = str(Path(reenact.__file__).parent)
files, calls = set(), [0]
def profile(frame, event, arg):
    is_function = frame.f_code.co_flags & 1  # not the body of a module or class, which only an import runs
    if event == "call" and is_function and frame.f_code.co_filename.startswith(ours):
        files.add(frame.f_code.co_filename); calls[0] += 1
def followed(work):
    files.clear(); calls[0] = 0
    sys.setprofile(profile)
    try:
        work()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return f"{len(files)} files, {calls[0]} calls"
trace = reenact.Trace("warm.jsonl"); trace.step("note", a=1)
print("Trace.step, warm:", followed(lambda: trace.step("note", a=1)))
import json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "stop_reason": "end_turn",
            "stop_sequence": None, "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 5, "output_tokens": 2}}).encode()
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body)))
        self.end_headers(); self.wfile.write(body)
    def log_message(self, *args): pass
server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
import anthropic
client = anthropic.Anthropic(api_key="x", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0)
tap = reenact.Tap("agent.jsonl"); tap.wrap(client)
messages = [{"role": "user", "content": "hi"}]
def ask():
    client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=messages)
    messages.extend([{"role": "assistant", "content": "hello"}, {"role": "user", "content": "again"}])
ask()
print("anthropic call, second turn:", followed(ask))
tap.close()
from reenact.cli.main import main
def command(*words):
    old = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        return followed(lambda: main(list(words)))
    finally:
        sys.stdout, sys.stderr = old
print("reenact show:", command("show", "agent.jsonl"))
print("reenact messages:", command("messages", "agent.jsonl"))
print("reenact stats:", command("stats", "agent.jsonl"))
Path("agent.py").write_text(f'''
import anthropic
client = anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1:{server.server_port}", max_retries=0)
messages = [dict(role="user", content="hi")]
for _ in range(2):
    client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=messages)
    messages += [dict(role="assistant", content="hello"), dict(role="user", content="again")]
''')
command("run", "agent.py")
print("reenact fork, the command's process:", command("fork", "@last", "--at", "turn:2"))
"""


def walks(src: Path) -> list[tuple[str, str]]:
    """How many of our files and calls a few things go through, in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", WALK],
            cwd=folder,
            env={"PYTHONPATH": str(src), "PATH": "/usr/bin:/bin", "HOME": folder},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        return [("walks", "could not be followed: " + done.stderr.strip().rpartition("\n")[2])]
    return [tuple(line.split(": ", 1)) for line in done.stdout.splitlines()]  # type: ignore[misc]


def measures(src: Path) -> dict[str, str]:
    tree = Tree(src / "reenact")
    sizes = [len(path.read_text().splitlines()) for path in tree.files.values()]
    folders = collections.Counter(str(path.parent.relative_to(tree.root)) for path in tree.files.values())
    widest, count = folders.most_common(1)[0]
    cycles = tree.cycles()
    text = "\n".join(path.read_text() for path in tree.files.values())
    return {
        "source lines": f"{sum(sizes):,}",
        "files": str(len(sizes)),
        "largest folder": f"{count} files ({widest})",
        "median file": f"{sorted(sizes)[len(sizes) // 2]} lines",
        "modules with one importer, families aside": str(len(tree.one_importer())),
        "public functions with one caller, elsewhere": str(tree.lone_functions()),
        "import cycles, late imports counted": f"{len(cycles)} ({sum(map(len, cycles))} modules)",
        "private attributes read on other objects": str(sum(map(len, tree.private_reads().values()))),
        "imports of our own inside functions": str(tree.late_imports()),
        "files with TYPE_CHECKING = False": str(text.count("\nTYPE_CHECKING = False")),
        "identifiers in dialect": str(tree.dialect()),
        **dict(walks(src)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="The order of the source tree in numbers.")
    parser.add_argument("--before", metavar="REV", help="compare with the tree of this commit")
    parser.add_argument("--list", action="store_true", help="name the modules behind the counts")
    options = parser.parse_args()
    now = measures(HERE / "src")
    before: dict[str, str] = {}
    if options.before:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(
                ["git", "archive", options.before, "src"], cwd=HERE, capture_output=True, check=True
            )
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            before = measures(Path(folder) / "src")
    width = max(map(len, now))
    if before:
        print(f"{'':{width}}  {'before':28}  now")
    for name, value in now.items():
        print(
            f"{name:{width}}  {before.get(name, '') + '  ' if not before else before.get(name, '-').ljust(28) + '  '}{value}"
        )
    if options.list:
        tree = Tree(HERE / "src" / "reenact")
        users = tree.importers()
        print(
            "\none importer:",
            *(f"{name} <- {next(iter(users[name]))}" for name in tree.one_importer()),
            sep="\n  ",
        )
        print("\ncycles:", *(" ".join(group) for group in tree.cycles()), sep="\n  ")


if __name__ == "__main__":
    main()
