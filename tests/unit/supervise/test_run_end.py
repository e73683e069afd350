"""The end that the supervisor writes: the agent's own words and sums, whatever state its file is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reenact import Trace
from reenact.supervise.run_end import complete_end

KNOWN = {"exit": 0, "duration_ms": 1.0, "peak_bytes": 1}


def recorded(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A run of one failed step, a model call and a note; and its first line."""
    path = folder / "run.jsonl"
    trace = Trace(path)
    trace.step("failed", error="no")
    trace.step("llm_call", usage={"input_tokens": 7, "output_tokens": 3})
    trace.step("note", text="ok")
    trace.close()
    return path, json.loads(path.read_text().splitlines()[0])


def completed(path: Path, first: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Have the end written; returns its fields, and the number of errors in the whole run."""
    status, totals, *_ = complete_end(str(path), first["run"], first["w"], KNOWN)
    line = json.loads(path.read_text().splitlines()[-1])
    assert (line["kind"], line["by"], line["status"]) == ("run.end", "supervisor", status)
    return line, totals.errors


def test_the_sums_of_the_agent_are_kept(tmp_path: Path) -> None:
    path, first = recorded(tmp_path)
    before = [json.loads(line) for line in path.read_text().splitlines()]
    line, errors = completed(path, first)
    assert line["tot"] == before[-1]["tot"] and errors == 1
    assert line["step"] == before[-1]["step"] + 1


@pytest.mark.parametrize("damage", ["torn", "inside", "first"])
def test_a_damaged_file_gets_its_end_on_a_line_of_its_own(tmp_path: Path, damage: str) -> None:
    path, first = recorded(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    if damage == "torn":
        lines[-1] = lines[-1][:40]
    elif damage == "inside":
        lines.insert(-1, '{"ts": 1, "ru\n')
    else:
        lines[0] = lines[0][30:]
    path.write_text("".join(lines))
    line, errors = completed(path, first)
    assert line["step"] > json.loads(lines[2])["step"] and line["tot"]["err"] == errors == 1


def test_the_agents_end_counts_though_a_late_response_comes_after_it(tmp_path: Path) -> None:
    path, first = recorded(tmp_path)
    end = json.loads(path.read_text().splitlines()[-1])
    late = {**end, "step": end["step"] + 1, "kind": "model.response", "call": "c"}
    lines = path.read_text().splitlines(keepends=True)
    lines[-1] = lines[-1].replace('"status": "ok"', '"status": "error", "error": {"type": "Broken"}')
    path.write_text("".join(lines) + json.dumps(late) + "\n")
    status, *_ = complete_end(str(path), first["run"], first["w"], {**KNOWN, "exit": 1})
    line = json.loads(path.read_text().splitlines()[-1])
    assert (status, line["error"], line["step"]) == ("error", {"type": "Broken"}, late["step"] + 1)
