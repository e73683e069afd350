"""How well suspects find the labelled causes: the place of the first right suspect in each run.

`python -m tests.labelled.found FOLDER` records all agents into a folder (or uses those that are there) and prints the figures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from labelled.places import events_at
from labelled.record import Label, record, scenarios
from reenact import Debugger


@dataclass(frozen=True)
class Found:
    """The suspects of one run that are shown by default, beside its label."""

    label: Label
    shown: tuple[str, ...]
    """Their kinds and evidence, the first first."""
    rank: int | None
    """Which of them is at a labelled place, from 1; None: none of the first three."""

    @property
    def is_held_out(self) -> bool:
        """Rules were made on the even numbers; the odd ones measure them."""
        return int(self.label.id) % 2 == 1


def found_in(path: Path, label: Label) -> Found:
    dbg = Debugger.load(path)
    right = [event for place in label.places for event in events_at(dbg, place)]
    shown = [each for each in dbg.suspects() if each.is_shown][:3]
    ranks = [rank for rank, each in enumerate(shown, 1) if each.event in right]
    return Found(
        label,
        tuple(f"{s.confidence} {s.kind} @{s.address}: {s.evidence}" for s in shown),
        min(ranks, default=None),
    )


def figures(found: Iterable[Found]) -> Iterator[str]:
    """Yield a line for each part: failures made rules on, failures held out, all; runs that pass."""
    every = list(found)
    failed = [each for each in every if each.label.failed]
    for name, some in (
        ("development", [each for each in failed if not each.is_held_out]),
        ("held out", [each for each in failed if each.is_held_out]),
        ("all failures", failed),
    ):
        first = sum(each.rank == 1 for each in some)
        among = sum(each.rank is not None for each in some)
        yield f"{name}: {len(some)} runs, cause first in {first}, among the three lines in {among}"
    passed = [each for each in every if not each.label.failed]
    yield f"passing: {len(passed)} runs, {sum(bool(each.shown) for each in passed)} with a suspect shown"


def main(folder: Path) -> None:
    ready = {path.parent.name: path for path in folder.glob("*/*.jsonl")}
    all_scenarios = scenarios()
    missing = [each for each in all_scenarios if each.label.id not in ready]
    ready |= {run.label.id: run.path for run in record(folder, missing)}
    found = [found_in(ready[each.label.id], each.label) for each in all_scenarios]
    for each in found:
        if each.is_held_out and "--all" not in sys.argv:
            continue
        is_right = each.rank == 1 if each.label.failed else not each.shown
        print(
            "ok " if is_right else "-- ",
            each.label.id,
            each.label.kind,
            "·",
            each.label.why,
            *each.label.places,
            f"rank {each.rank}",
        )
        for line in each.shown if not is_right else ():
            print("       ", line[:300])
    print(*figures(found), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
