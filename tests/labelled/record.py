"""Record the labelled agents: each is a program of its own under `reenact run`, against one scripted model."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .model import ScriptedModel

AGENTS = Path(__file__).parent / "agents"
COMMAND = str(Path(sys.executable).with_name("reenact"))
PATIENCE_S = 120


@dataclass(frozen=True)
class Label:
    """What is known about a run: whether it did its task, and if not, why, and where the cause lies."""

    id: str
    """Four digits."""
    failed: bool
    kind: str = ""
    why: str = ""
    places: tuple[str, ...] = ()
    """See `places.py`; each of them is right."""


@dataclass(frozen=True)
class Scenario:
    """A program, what the model answers it, and its label."""

    path: Path
    label: Label
    script: Any

    @property
    def requests(self) -> int:
        """How many requests the program makes: one per scripted turn."""
        return sum(map(len, self.script.values())) if isinstance(self.script, dict) else len(self.script)


@dataclass(frozen=True)
class Recorded:
    """A recording and its label."""

    path: Path
    label: Label
    exit: int
    stderr: str
    turns_left: int
    """Scripted turns that the program did not request."""


def scenarios(ids: Iterable[str] = ()) -> list[Scenario]:
    """All scenarios, or those with these ids."""
    wanted = set(ids)
    files = sorted(AGENTS.glob("a[0-9]*.py"))
    return [_load(file) for file in files if not wanted or file.name[1:5] in wanted]


def _load(file: Path) -> Scenario:
    """Read a program's `MODEL` and `LABEL` without running it as one."""
    sys.path.insert(0, str(AGENTS))
    try:
        names = runpy.run_path(str(file), run_name="scenario")
    finally:
        sys.path.remove(str(AGENTS))
    number, label = file.name[1:5], names["LABEL"]
    if label == "passes":
        return Scenario(file, Label(number, failed=False), names["MODEL"])
    kind, why, *places = label
    return Scenario(file, Label(number, True, kind, why, tuple(places)), names["MODEL"])


def record(folder: Path, chosen: Iterable[Scenario] | None = None, workers: int = 2) -> Iterator[Recorded]:
    """Record scenarios (default: all) into a folder, in order."""
    chosen = scenarios() if chosen is None else list(chosen)
    folder.mkdir(parents=True, exist_ok=True)
    with ScriptedModel() as model, ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda scenario: _record(scenario, folder, model), chosen)


def _record(scenario: Scenario, folder: Path, model: ScriptedModel) -> Recorded:
    number = scenario.label.id
    url = model.url_for(number, scenario.script)
    out = folder / number
    done = subprocess.run(
        [COMMAND, "run", "--out", str(out), "--name", number, str(scenario.path)],
        env=_env(url), cwd=folder, capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    path = min(
        out.glob("*.jsonl"), key=lambda each: len(each.name)
    )  # files of child processes have longer names
    return Recorded(path, scenario.label, done.returncode, done.stderr.decode(), model.left(number))


def _env(url: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "PYTEST_"))}
    return ours | {
        "MODEL_URL": url,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "LANGSMITH_TRACING": "false",
        "PYTHONDONTWRITEBYTECODE": "1",  # no __pycache__ among the programs
    }
