"""Make show.svg, the picture in the README, from the real output of ``reenact demo`` and ``reenact show``.

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

WIDTH = 100
COMMAND = "reenact show @failed"


def real_output() -> str:
    """Record the demo in a folder of its own and return what the command prints there, with colour."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "REENACT_DIR": folder, "FORCE_COLOR": "1", "TERM": "xterm"}
        env["COLUMNS"] = str(WIDTH)
        env.pop("NO_COLOR", None)
        run(["demo", "--keep", folder], env)
        return run(COMMAND.split()[1:], env)


def run(words: list[str], env: dict[str, str]) -> str:
    command = [sys.executable, "-m", "reenact", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout  # noqa: S603


def main() -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"\x1b[1m$ {COMMAND}\x1b[0m\n{real_output()}".rstrip()))
    # No font from the network: a picture must not make requests.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="reenact", theme=MONOKAI, code_format=template, unique_id="show")
    svg = svg.replace("Fira Code", "Menlo, Consolas, DejaVu Sans Mono")
    Path(__file__).with_name("show.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
