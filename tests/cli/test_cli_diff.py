"""reenact diff."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from support.sample_runs import Sample, record
from support.typed import typed

OWN = Path(__file__).parents[1] / "unit" / "compare" / "conversations.json"
LISBON = json.loads(OWN.read_text())[0]["messages"]


def run(path: Path, **results: str) -> Path:
    messages = copy.deepcopy(LISBON)
    for message in messages:
        if message["role"] == "tool":
            message["content"] = results.get(message["tool_call_id"], message["content"])
    return record(Sample("lisbon", None, messages), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(tmp_path / "one.jsonl")
    run(tmp_path / "same.jsonl")
    run(tmp_path / "other.jsonl", call_2="182")
    return tmp_path


def test_the_first_three_lines_are_place_cause_and_consequence(folder: Path) -> None:
    code, out, err = typed("diff", folder / "one.jsonl", folder / "other.jsonl")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0] == 'first difference  turn 2, step 4: price(hotel="casa")'
    assert lines[1].startswith("cause             tool-output-changed: ") and "82 → 182" in lines[1]
    assert lines[2].startswith(
        "consequence       no later difference because of it; the same again from step 5"
    )
    assert any("82" in line and "│" in line and "182" in line for line in lines)
    assert (
        typed("diff", folder / "one.jsonl", folder / "other.jsonl", "--summary").out.splitlines() == lines[:3]
    )


def test_the_same_is_exit_0(folder: Path) -> None:
    for other in ("same.jsonl", "one.jsonl"):
        code, out, err = typed("diff", folder / "one.jsonl", folder / other, "--summary")
        assert (code, err) == (0, "") and "the runs are the same" in out


def test_json_has_a_verdict(folder: Path) -> None:
    (found,) = typed("diff", folder / "one.jsonl", folder / "other.jsonl", "--json").rows
    assert found["verdict"] == "different" and len(found["headline"]) == 3
    assert [each["cause"] for each in found["differences"]] == ["tool-output-changed"]
    assert typed("diff", folder / "one.jsonl", folder / "same.jsonl", "--json").rows[0]["verdict"] == "same"


def test_a_narrow_terminal_gets_one_below_the_other(folder: Path) -> None:
    out = typed("diff", folder / "one.jsonl", folder / "other.jsonl", COLUMNS="60").out
    assert "│" not in out and "  - [-82-]" in out and "  + {+182+}" in out


def test_what_is_ignored(folder: Path) -> None:
    assert (
        typed("diff", folder / "one.jsonl", folder / "other.jsonl", "--ignore", "tool.price.result")[0] == 0
    )
    code, _, err = typed("diff", folder / "one.jsonl", folder / "other.jsonl", "--ignore", "price")
    assert code == 2 and "is not a path to ignore" in err and "hint:" in err


def test_sets_of_runs(tmp_path: Path) -> None:
    for number in range(5):
        run(tmp_path / f"ok-{number}.jsonl", call_4=f"code {number}")
        run(tmp_path / f"fail-{number}.jsonl", call_2="182", call_4=f"code {number + 9}")
    code, out, err = typed("diff", "--good", f"{tmp_path}/ok-*", "--bad", f"{tmp_path}/fail-*")
    assert (code, err) == (1, "")
    assert 'leave the common path at step 4, price(hotel="casa") (tool-output-changed)' in out
    assert 'tool output: price(hotel="casa") → 182: in 5 of 5 bad and 0 of 5 good runs' in out
    found = typed("diff", "--good", f"{tmp_path}/ok-*", "--bad", f"{tmp_path}/fail-*", "--json").rows[0]
    assert found["verdict"] == "different" and found["noise"] == 4 and found["is_enough"]
    few = typed("diff", "--good", f"{tmp_path}/ok-[01].*", "--bad", f"{tmp_path}/fail-[01].*", "--json").rows[
        0
    ]
    assert (
        few["verdict"] == "cannot tell" and "not enough runs" in few["headline"][1] and not few["is_enough"]
    )
    one = typed("diff", "--good", f"{tmp_path}/ok-*", "--bad", f"{tmp_path}/fail-0.jsonl")
    assert "not enough runs: 5 good and 1 bad" in one.out
    noise = typed("diff", "--good", f"{tmp_path}/ok-[0-4].*", "--bad", f"{tmp_path}/ok-[0-4].*")
    assert noise[0] == 2 and "both good and bad" in noise.err


def test_noise_is_no_cause(tmp_path: Path) -> None:
    for number in range(5):
        run(tmp_path / f"ok-{number}.jsonl", call_4=f"code {number}")
        run(tmp_path / f"fail-{number}.jsonl", call_4=f"code {number + 9}")
    found = typed("diff", "--good", f"{tmp_path}/ok-*", "--bad", f"{tmp_path}/fail-*", "--json").rows[0]
    assert found["verdict"] == "cannot tell" and found["separators"][0]["confidence"] < 0.95


@pytest.mark.parametrize("name", ["missing.jsonl", "foreign.jsonl", "text.jsonl", "nothing.jsonl"])
def test_bad_input_is_a_sentence_and_exit_2(folder: Path, name: str) -> None:
    (folder / "foreign.jsonl").write_text('{"type": "user", "uuid": "1", "sessionId": "2"}\n')
    (folder / "text.jsonl").write_text("hello\n")
    (folder / "nothing.jsonl").write_text("")
    code, out, err = typed("diff", folder / "one.jsonl", folder / name)
    assert code == 2 and not out and err and "Traceback" not in err and "fault of its own" not in err


def test_control_characters_of_a_trace_are_not_printed(folder: Path) -> None:
    run(folder / "evil.jsonl", call_2="\x1b[31m182\x07", call_3="\x9b2J")
    out = typed("diff", folder / "one.jsonl", folder / "evil.jsonl", "--all").out
    assert "\x1b" not in out and "\x07" not in out and "\x9b" not in out
