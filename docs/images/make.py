"""Make the pictures in the README from the real output of real commands.

Run by hand when the output has changed: ``python docs/images/make.py``. Needs rich.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from reenact.demo.model_server import scripted_model

HERE = Path(__file__).parent
WIDTH = 100
SHOW = "reenact show @failed"
EDIT = "sed -i 's/price: /price per night: /' trip.py"
REPLAY = "reenact replay trip"
TRIP = """
import json, os, urllib.request
from reenact import Tap

tap = Tap()

@tap.tool(effect="read")
def lookup(question):
    return "82 EUR"

def ask(messages):
    tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": messages, "tools": tools}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))["content"]

messages = [{"role": "user", "content": "Two nights in Lisbon"}]
while True:
    answer = ask(messages)
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    content = "price: " + lookup(**uses[0]["input"])
    found = {"type": "tool_result", "tool_use_id": uses[0]["id"], "content": content}
    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": [found]}]
print(answer)
"""


def shown() -> str:
    """Record the demo in a folder of its own and return what ``show`` prints there."""
    with tempfile.TemporaryDirectory() as folder:
        typed(f"reenact demo --keep {folder}", folder)
        return f"{prompt(SHOW)}{typed(SHOW, folder)}"


def replayed() -> str:
    """Record an agent, change one text in it and return what a replay says."""
    with tempfile.TemporaryDirectory() as folder, scripted_model() as base_url:
        Path(folder, "trip.py").write_text(TRIP)
        env = {"MODEL_URL": base_url, "REENACT_DIR": "."}
        typed("reenact run trip.py", folder, **env)
        typed(EDIT, folder)
        said = typed(f"{REPLAY} 2>&1 | tail -n +2", folder, **env).replace(f"{folder}/", "")
        return f"{prompt(EDIT)}{prompt(REPLAY)}{said}"


def prompt(command: str) -> str:
    return f"\x1b[1m$ {command}\x1b[0m\n"


def typed(command: str, folder: str, **more: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "REENACT_DIR": folder, "FORCE_COLOR": "1", "TERM": "xterm", "PATH": path, **more}
    env["COLUMNS"] = str(WIDTH)
    env.pop("NO_COLOR", None)
    return subprocess.run(  # noqa: S602
        command, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout


def draw(name: str, text: str) -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text.rstrip()))
    # No font from the network: a picture must not make requests.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="reenact", theme=MONOKAI, code_format=template, unique_id=name)
    svg = svg.replace("Fira Code", "Menlo, Consolas, DejaVu Sans Mono")
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    draw("show", shown())
    draw("replay", replayed())
