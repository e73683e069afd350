"""Faults planted in real conversations: the right steps are paired, and each fault has its cause.

``REENACT_LONG=1`` tries every fault in every run; `python -m pytest -s -k figures` prints the figures.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path

import pytest

from reenact import Recording
from reenact.compare.comparison import Comparison
from reenact.compare.masks import Masks
from support.examples import LONG
from support.faults import NAMES, Planted, plant
from support.sample_runs import Sample, present, record, swe_agent, tau_bench

PAIRS = [list(each) for each in combinations(("insert", "output", "prompt", "args", "input", "delete"), 2)]
OWN = Path(__file__).parent / "conversations.json"


def conversations() -> list[Sample]:
    """Small runs of our own."""
    return [Sample(each["name"], None, each["messages"]) for each in json.loads(OWN.read_text())]


def compared(planted: Planted, folder: Path, number: int) -> Comparison:
    before = record(Sample("agent", None, planted.before), folder / f"{number}-before.jsonl")
    after = record(
        Sample("agent", None, planted.after), folder / f"{number}-after.jsonl", model=planted.model
    )
    return Comparison.of(Recording.load(before), Recording.load(after), Masks())


def roots(comparison: Comparison) -> list[str]:
    return [each.cause for each in comparison.report().differences if each.is_root]


def explained(found: list[str], causes: tuple[frozenset[str], ...]) -> bool:
    """True if there is exactly one root for each fault, with a cause that is right for it."""
    left = list(found)
    for expected in causes:
        cause = next((each for each in left if each in expected), None)
        if cause is None:
            return False
        left.remove(cause)
    return not left


def right_pairs(comparison: Comparison, planted: Planted) -> tuple[int, int]:
    """How many steps of the first run are paired as they should be, and how many steps it has."""
    ours = {
        one.number: None if other is None else other.number for (one, other), _ in comparison.pairs if one
    }
    return sum(ours[number] == other for number, other in planted.pairs.items()), len(planted.pairs)


def by_index(planted: Planted) -> int:
    most = max((number for number in planted.pairs.values() if number), default=0)
    return sum((number if number <= most else None) == other for number, other in planted.pairs.items())


def by_difflib(planted: Planted) -> int:
    """Lines of JSON without ids, as people compare them."""
    sides = [_lines(messages) for messages in (planted.before, planted.after)]
    found: dict[int, int] = {}
    for sort, i, j, k, m in SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        if sort == "equal" or (sort == "replace" and j - i == m - k):
            found |= {i + n + 1: k + n + 1 for n in range(j - i)}
    return sum(found.get(number) == other for number, other in planted.pairs.items())


def _lines(messages: list[dict[str, object]]) -> list[str]:
    lines = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        uses = message.get("tool_calls") or []
        lines.append(json.dumps([message.get("content"), [use["function"] for use in uses]]))
        results = {each.get("tool_call_id"): each.get("content") for each in messages[at + 1 :]}
        lines += [json.dumps([use["function"], results.get(use["id"])]) for use in uses]
    return lines


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_in_a_small_run_is_found_with_its_cause(tmp_path: Path, name: str) -> None:
    tried = 0
    for number, sample in enumerate(conversations()):
        planted = plant(sample.messages, [name], number)
        if planted is not None:
            tried += 1
            comparison = compared(planted, tmp_path, number)
            assert explained(roots(comparison), planted.causes), (sample.name, name, roots(comparison))
            assert right_pairs(comparison, planted)[0] == len(planted.pairs), (sample.name, name)
    assert tried


@present
@pytest.mark.timeout(3600 if LONG else 240)
def test_figures_of_real_runs(tmp_path: Path) -> None:
    samples = [*tau_bench(), *swe_agent()]
    some = samples if LONG else samples[::24]
    single = _figures(some, [[name] for name in NAMES], tmp_path)
    double = _figures(some, PAIRS if LONG else [], tmp_path)
    print(_shown(single), _shown(double))
    for figures in single.values():
        assert figures["pairs"] >= 0.95 * figures["steps"]
    tried = sum(figures["tried"] for figures in single.values())
    assert sum(figures["caused"] for figures in single.values()) >= 0.98 * tried
    assert sum(figures["pairs"] for figures in single.values()) > sum(f["difflib"] for f in single.values())


def _figures(samples: list[Sample], faults: list[list[str]], folder: Path) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for number, sample in enumerate(samples):
        for names in faults:
            planted = plant(sample.messages, names, number)
            if planted is None:
                continue
            comparison = compared(planted, folder, number)
            figures = found["+".join(names)]
            right, steps = right_pairs(comparison, planted)
            is_right = explained(roots(comparison), planted.causes)
            if not is_right:
                print(sample.name, names, roots(comparison), planted.causes)
            figures.update(
                tried=1,
                caused=is_right,
                pairs=right,
                steps=steps,
                index=by_index(planted),
                difflib=by_difflib(planted),
            )
            for path in folder.iterdir():
                path.unlink()
    return found


def _shown(found: dict[str, Counter[str]]) -> str:
    lines = [f"{'fault':18} {'runs':>5} {'cause':>7} {'pairs':>7} {'index':>7} {'difflib':>7}"]
    for name, each in found.items():
        steps = each["steps"] or 1
        shares = (
            each["caused"] / each["tried"],
            *(each[key] / steps for key in ("pairs", "index", "difflib")),
        )
        lines.append(f"{name:18} {each['tried']:>5} " + " ".join(f"{share:>7.1%}" for share in shares))
    return "\n" + "\n".join(lines)
