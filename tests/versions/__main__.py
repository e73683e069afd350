"""Build each environment of `environments.toml` under .venvs/versions and play it bare, recorded and wrapped.

`python -m versions [NAME ...]`, with tests/ as the place to start from. The program must see the same, the provider
receive the same, and each recording must be right and whole.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from reenact.recording.recording import Recording
from sdk import offline
from sdk.observe import Plain
from sdk.recorded import check_calls
from sdk.table import Cell
from support.provider import Provider, Received

from .cells import cells_of, environments

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / ".venvs" / "versions"
TIMEOUT = 300


def build(name: str, install: list[str]) -> Path:
    """Return the Python of an environment, made anew if what it holds has changed."""
    python = FOLDER / name / "bin" / "python"
    stamp = FOLDER / name / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(install):
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", FOLDER / name], check=True)
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "-qq", *install]
        subprocess.run(pip, check=True)
        stamp.write_text("\n".join(install))
    return python


class Place:
    """Where an environment is played: a provider, a folder for its recordings, and variables."""

    def __init__(self, provider: Provider, folder: Path) -> None:
        self.provider = provider
        self.folder = folder
        self.root = f"http://127.0.0.1:{provider.port}"
        paths = f"{HERE.parent}:{ROOT / 'src'}"
        self.variables = {**offline.environment(folder), "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *command: object) -> tuple[str, list[dict[str, Any]], list[Received]]:
        """Return what a program printed, and what the provider received: plain, and as it was."""
        self.provider.reset()
        done = subprocess.run(
            [str(word) for word in command], env=self.variables, capture_output=True, text=True, timeout=TIMEOUT
        )  # fmt: skip
        assert done.returncode == 0, (
            f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
        )
        log = self.provider.settled()
        return done.stdout, Plain(self.provider.port).requests(log), log

    def recorded(self, python: Path, *words: object) -> tuple[Any, Path]:
        out = self.folder / "recorded"
        run = [sys.executable, "-m", "reenact", "run", "--strict-coverage", "--out", out, "--", python]
        found = self.run(*run, *words)
        (path,) = [
            each for each in out.glob("*.jsonl") if '"command": ' in each.read_text().partition("\n")[0]
        ]
        return found, path


def same(what: str, bare: Any, recorded: Any) -> None:
    for one, other in zip(bare, recorded, strict=True):
        assert one == other, f"{what}:\n  bare:     {one}\n  recorded: {other}"


def check(cells: list[Cell], path: Path, log: list[Received]) -> None:
    """Check each cell's part of a recording."""
    end = json.loads(path.read_text().splitlines()[-1])
    assert end["kind"] == "run.end" and end["dropped"] == 0 and not end.get("unseen"), end
    recording = Recording.load(path)
    requests = [event for event in recording.events if event.kind == "model.request"]
    reported = {
        event.call: event.stored_fields for event in recording.events if event.kind == "model.response"
    }
    for number, cell in enumerate(cells):
        mark = f"@{number}/"
        try:
            check_calls(
                cell, [each for each in requests if mark in each.stored_fields["url"]], reported,
                [each for each in log if mark in each.target], path,
            )  # fmt: skip
        except (AssertionError, KeyError) as exc:
            raise AssertionError(f"{cell}: {exc}") from exc


def play_table(name: str, python: Path, cells: list[Cell], place: Place) -> str:
    words = ["-m", "versions.play", name, place.root]
    bare, requests, _ = place.run(python, *words)
    assert bare.count("\n") == len(cells)
    for cell, line in zip(cells, bare.splitlines(), strict=True):
        assert ("raised" in json.loads(line)[1]) == cell.fails, f"bare, {line}"
    (recorded, reported, log), path = place.recorded(python, *words)
    same("reenact run", bare.splitlines(), recorded.splitlines())
    same("reenact run", requests, reported)
    check(cells, path, log)
    if not environments()[name].get("wrap", True):
        return f"{len(cells)} cells, not wrapped"
    path = place.folder / "wrapped.jsonl"
    wrapped, reported, log = place.run(python, *words, path)
    same("tap.wrap", bare.splitlines(), wrapped.splitlines())
    same("tap.wrap", requests, reported)
    check(cells, path, log)
    return f"{len(cells)} cells"


def play_program(python: Path, program: Path, expect: dict[str, int], place: Place) -> str:
    bare, _, _ = place.run(python, program)
    (recorded, _, _), path = place.recorded(python, program)
    same("reenact run", bare.splitlines(), recorded.splitlines())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    others = [each for each in path.parent.glob("*.jsonl") if each != path]
    kinds = Counter(line["kind"] for line in lines)
    kinds.update(json.loads(line)["kind"] for each in others for line in each.read_text().splitlines())
    assert {kind: kinds[kind] for kind in expect} == expect and not lines[-1].get("unseen"), kinds
    return program.name


def play(name: str, environment: dict[str, Any], provider: Provider) -> str:
    python = build(name, environment["install"])
    with tempfile.TemporaryDirectory() as folder:
        place = Place(provider, Path(folder))
        if "program" in environment:
            return play_program(python, HERE / environment["program"], environment["expect"], place)
        return play_table(name, python, cells_of(environment), place)


def main(names: list[str]) -> int:
    failed = 0
    with Provider() as provider:
        for name, environment in environments().items():
            if names and name not in names:
                continue
            try:
                reported = f"ok    {play(name, environment, provider)}"
            except (AssertionError, subprocess.SubprocessError) as exc:
                failed += 1
                reported = f"FAIL  {exc}"
            print(f"{name:<16} {' '.join(environment['install']):<36} {reported}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
