"""``diff``: from the addresses of two runs, or of two sets of runs, to a report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import overload

from ..errors import NoSuchRun, UsageError
from ..recording.listing import RunRow, head_and_tail, list_runs
from ..recording.recording import Recording, recording_at
from ..tracefile.status import OK
from .comparison import Comparison, Progress
from .masks import Masks
from .report import RunDiff
from .run_sets import Run, SetDiff, diff_sets


@overload
def diff(
    left: Run,
    right: Run | None = None,
    *,
    ignore: Sequence[str] = (),
    masks: Masks | None = None,
    progress: Progress | None = None,
) -> RunDiff: ...
@overload
def diff(
    *,
    good: Iterable[Run],
    bad: Iterable[Run],
    ignore: Sequence[str] = (),
    masks: Masks | None = None,
    progress: Progress | None = None,
) -> SetDiff: ...
def diff(
    left: Run | None = None,
    right: Run | None = None,
    *,
    good: Iterable[Run] | None = None,
    bad: Iterable[Run] | None = None,
    ignore: Sequence[str] = (),
    masks: Masks | None = None,
    progress: Progress | None = None,
) -> RunDiff | SetDiff:
    """Compare two runs, each a path, an id, a name, ``@last`` or a ``Recording``; or good with bad runs.

    Without a second one, a replay or fork is compared with the run it was made from, any other run with the
    one of its name before it: the older one is always the left side. ``ignore`` adds paths to those of the
    settings, such as ``tool.get_price.result.fetched_at``.
    """
    masks = Masks.of_settings() if masks is None else masks
    masks = masks.with_paths(ignore) if ignore else masks
    if good is not None or bad is not None:
        if good is None or bad is None or left is not None or right is not None:
            raise UsageError(
                "good= and bad= are used together and name all runs", hint="leave out left and right"
            )
        return diff_sets(good, bad, masks, progress)
    if left is None:
        raise UsageError("diff() needs a run", hint='for instance diff("a.jsonl", "b.jsonl")')
    one = _opened(left)
    if right is None:
        one, other = earlier_run(one), one
    else:
        other = _opened(right)
    return Comparison.of(one, other, masks, progress).report()


def _opened(run: Run) -> Recording:
    return run if isinstance(run, Recording) else recording_at(os.fspath(run))


def earlier_run(recording: Recording) -> Recording:
    """Return the run that another one is compared with by default."""
    folder = os.path.dirname(recording.path) or "."
    rows = [row for row in list_runs(folder) if row.id is not None]
    own = next((row for row in head_and_tail(recording.path) if row.id == recording.run_id), None)
    parent = own.made_from if own is not None else None
    if parent is not None:
        found = next((row for row in rows if row.id == parent), None)
        if found is None:
            raise NoSuchRun(
                f"{recording.name} was made from the run {parent}, which is not in {folder}",
                asked=parent,
                hint="name both: `reenact diff A B`",
            )
        return Recording.load(found.path, found.id)
    before = [row for row in rows if _is_before(row, recording)]
    if not before:
        raise NoSuchRun(
            f"there is no earlier run named {recording.name} in {folder} to compare with",
            asked=recording.name,
            hint="name both: `reenact diff A B`; `reenact ls` lists the runs",
        )
    return Recording.load(before[-1].path, before[-1].id)


def passing_run(recording: Recording) -> Recording | None:
    """Return the newest run of the same name before another one that ended well; None if there is none."""
    rows = list_runs(os.path.dirname(recording.path) or ".")
    before = [row for row in rows if row.id is not None and row.status == OK and _is_before(row, recording)]
    return Recording.load(before[-1].path, before[-1].id) if before else None


def _is_before(row: RunRow, recording: Recording) -> bool:
    return (
        row.name == recording.name
        and row.id != recording.run_id
        and row.made_from is None
        and (row.started or 0.0) <= (recording.started or 0.0)
    )
