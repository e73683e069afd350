"""Why aligned steps differ: roots, and what follows from them, found in one walk through both runs.

A difference that an earlier one explains is not a root: a request that carries a result which differed, a
tool called with arguments that a different response names, a text that repeats one which differed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from ..recording.calls import MODEL, TOOL
from . import report
from .digests import WITHHELD, Digest, Piece
from .steps import END, EQUAL, EVENT, INPUT, RunSteps, StepFacts
from .texts import Texts

_REMEMBERED = 200
"""Differences whose texts later ones are searched for."""

_SOURCES = 8
"""Steps that a message of the prompt may come from, where several have its id or its text."""

_ORDER = {cause: place for place, cause in enumerate(report.CAUSES)}

BECAUSE = {
    report.INPUT: "what came from outside differs, and nothing before it does",
    report.CODE: "the program did something else here, and no response before it explains that",
    (report.PROMPT, "system"): "the request has another system prompt",
    (report.PROMPT, "tools"): "the request offers other tools",
    (report.PROMPT, "settings"): "the request has other settings",
    (report.PROMPT, "history"): "the request has another history: messages were left out or rewritten",
    report.MODEL: "the request names another model",
    report.SERVED_MODEL: "the same model was requested, and another one answered",
    (report.RESPONSE, "decision"): "the requests are equal, and the model decided otherwise",
    (report.RESPONSE, "text"): "the requests are equal, and the model wrote something else",
    (report.RESPONSE, "stop"): "the requests are equal, and the model stopped for another reason",
    (report.RESPONSE, "error"): "the requests are equal, and the call failed in one run",
    (report.RESPONSE, "reasoning"): "the requests are equal, and the model thought something else",
    report.ARGS: "the tool was called with other arguments, and no model call led to it",
    report.OUTPUT: "the same tool with the same arguments returned something else",
    report.ERROR: "the same tool with the same arguments failed otherwise",
    report.EXTRA: "only the second run has this",
    report.MISSING: "only the first run has this",
    report.LOOP: "the same call was made another number of times",
    report.END: "the runs ended differently, and nothing before that differs",
    report.UNKNOWN: "the responses differ, but whether the requests do cannot be told",
}


class Found:
    """A difference on its way to the report."""

    __slots__ = ("cause", "detail", "follows", "left", "number", "parts", "pieces", "right", "why")

    def __init__(self, number: int, cause: str, detail: str, follows: int | None) -> None:
        self.number, self.cause, self.detail, self.follows = number, cause, detail, follows
        self.left: list[StepFacts] = []
        self.right: list[StepFacts] = []
        self.parts: list[str] = []
        """Which parts of the steps differ."""
        self.pieces: tuple[frozenset[Digest], frozenset[Digest]] = (frozenset(), frozenset())
        """Of the prompt, those that only one side has."""
        self.why = BECAUSE.get((cause, detail)) or BECAUSE.get(cause, "")


class Hidden(NamedTuple):
    """Two equal values that may hide a difference."""

    left: StepFacts
    right: StepFacts
    part: str
    why: str


class _Lane:
    """How far the walk has come in a pair of lanes."""

    __slots__ = ("added", "dropped", "last", "one_sided")

    def __init__(self) -> None:
        self.added: tuple[list[Piece], list[Piece]] = ([], [])
        """What requests of only one run added since the last pair."""
        self.dropped: tuple[list[Piece], list[Piece]] = ([], [])
        self.last: Found | None = None
        """The latest difference since both did the same."""
        self.one_sided: Found | None = None
        """The difference that the step before belongs to, if only one run has it."""


class Walk:
    """Goes through aligned steps in order."""

    def __init__(self, left: RunSteps, right: RunSteps, texts: Texts) -> None:
        self._runs = left, right
        self._texts = texts
        self.found: list[Found] = []
        self.hidden: list[Hidden] = []
        self.equal_outputs: list[tuple[StepFacts, StepFacts]] = []
        """Calls of a tool with equal arguments and results that differ or not, for proposals of masks."""
        self.of_step: tuple[dict[int, Found], dict[int, Found]] = ({}, {})
        self._settings: dict[tuple[str, Digest | None, Digest | None], Found] = {}
        self._lanes: dict[str, _Lane] = {}

    def step(self, left: StepFacts | None, right: StepFacts | None, lane: str) -> None:
        """Take in the next aligned steps of a lane."""
        state = self._lanes.setdefault(lane, _Lane())
        if left is None or right is None:
            self._one_sided(left, right, state)
            return
        before = len(self.found)
        state.one_sided = None
        if left.kind == EQUAL:
            state.last = None
        elif left.kind == MODEL:
            self._model(left, right, state)
        elif left.kind == TOOL:
            self._tool(left, right)
        else:
            self._event(left, right, state)
        if len(self.found) > before and not (left.kind == MODEL and not _answer_parts(left, right)):
            state.last = self.found[before]  # an equal response leads to nothing else
        elif left.kind in (MODEL, TOOL):
            state.last = None

    # what differs -----------------------------------------------------------------------------------

    def _add(
        self,
        cause: str,
        left: Iterable[StepFacts],
        right: Iterable[StepFacts],
        parts: Iterable[str],
        *,
        detail: str = "",
        follows: Found | None = None,
    ) -> Found:
        root = None if follows is None else follows.number
        found = Found(len(self.found) + 1, cause, detail, root)
        found.left, found.right, found.parts = list(left), list(right), list(parts)
        self.found.append(found)
        for side, steps in zip(self.of_step, (found.left, found.right), strict=True):
            for step in steps:
                side.setdefault(step.number, found)
        return found

    def _of(self, left: StepFacts | None, right: StepFacts | None) -> Found | None:
        """Return the difference that a step of either run belongs to."""
        found = self.of_step[0].get(left.number) if left is not None else None
        return found or (self.of_step[1].get(right.number) if right is not None else None)

    def _hide(self, left: StepFacts, right: StepFacts, part: str, why: frozenset[str]) -> None:
        if why:
            self.hidden.append(Hidden(left, right, part, " and ".join(sorted(why))))

    # model calls ------------------------------------------------------------------------------------

    def _model(self, left: StepFacts, right: StepFacts, state: _Lane) -> None:
        roots, explained, pieces = self._request(left, right, state)
        answer = _answer_parts(left, right)
        lost = _lost_in_request(left, right)
        if not roots and not explained:
            self._hide(left, right, "request", lost)
        if answer and (left.request is None or right.request is None):
            explained = explained or self._repeats(self._texts.output(left), self._texts.output(right))
            lost |= {WITHHELD}
        if not answer:
            self._hide(left, right, "response", left.lost | right.lost)
        groups: dict[tuple[str, str], list[str]] = {}
        for cause, detail, part in roots:
            groups.setdefault((cause, detail), []).append(part)
        first: Found | None = None
        for (cause, detail), parts in sorted(groups.items(), key=lambda each: _ORDER[each[0][0]]):
            found = self._add(cause, [left], [right], parts, detail=detail)
            found.pieces = pieces
            first = first or found
            for key in self._changed_settings(left, right):
                if (part := _part_of_setting(key[0])) in parts:
                    self._settings.setdefault(key, found)
                    del part
        if first is not None:
            first.parts += answer
        elif answer:
            self._response(left, right, answer, explained, lost)
        if left.attempts != right.attempts:
            self._add(report.LOOP, [left], [right], ["attempts"], detail="retries")

    def _response(
        self,
        left: StepFacts,
        right: StepFacts,
        answer: list[str],
        explained: Found | None,
        lost: frozenset[str],
    ) -> None:
        one, other = left.answered, right.answered
        if explained is not None:
            self._add(report.RESPONSE, [left], [right], answer, detail=answer[0], follows=explained)
        elif one is not None and other is not None and one.model != other.model and one.model and other.model:
            self._add(report.SERVED_MODEL, [left], [right], ["served", *answer])
        elif answer == ["served"]:
            return
        elif lost:
            self._add(report.UNKNOWN, [left], [right], answer, detail=" and ".join(sorted(lost)))
        else:
            self._add(report.RESPONSE, [left], [right], answer, detail=answer[0])

    def _changed_settings(
        self, left: StepFacts, right: StepFacts
    ) -> list[tuple[str, Digest | None, Digest | None]]:
        one = left.request.settings if left.request is not None else {}
        other = right.request.settings if right.request is not None else {}
        if one == other or left.request is None or right.request is None:
            return []
        keys = {**one, **other}
        return [(key, one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)]

    def _request(
        self, left: StepFacts, right: StepFacts, state: _Lane
    ) -> tuple[list[tuple[str, str, str]], Found | None, tuple[frozenset[Digest], frozenset[Digest]]]:
        """Return the roots in a request as (cause, detail, part), and a difference that explains another part
        of it."""
        roots: list[tuple[str, str, str]] = []
        explained: Found | None = None
        for key in self._changed_settings(left, right):
            known, part = self._settings.get(key), _part_of_setting(key[0])
            if known is not None:
                explained = explained or known
            elif part == "model":
                roots.append((report.MODEL, "", part))
            else:
                roots.append((report.PROMPT, part, part))
        for request, added, dropped in zip(
            (left.request, right.request), state.added, state.dropped, strict=True
        ):
            added += request.added if request is not None else []
            dropped += request.dropped if request is not None else []
        only = self._not_masked(_cancelled(*state.added), left, right)
        gone = _cancelled(*state.dropped)
        state.added, state.dropped = ([], []), ([], [])
        if left.request is None or right.request is None or not any((*only, *gone)):
            return roots, explained, (frozenset(), frozenset())
        if any(
            self._explains(piece, side, (left, right)[side]) is None
            for side in (0, 1)
            for piece in only[side]
        ):
            only = self._texts.really_only(left, right, only)
        unexplained: list[list[Piece]] = [[], []]
        for side, step in ((0, left), (1, right)):
            for piece in only[side]:
                by = self._explains(piece, side, step)
                explained = explained or by
                if by is None:
                    unexplained[side].append(piece)
        by_text = self._by_text(left, right, unexplained)
        if by_text is not None:
            return roots, explained or by_text, (frozenset(), frozenset())
        is_edit = any(
            self._explains(piece, side, (left, right)[side]) is None
            for side in (0, 1)
            for piece in self._texts.really_gone(left, right, gone)[side]
        )
        roots += self._piece_roots(unexplained, is_edit)
        pieces = (
            frozenset(piece.digest for piece in unexplained[0]),
            frozenset(piece.digest for piece in unexplained[1]),
        )
        return roots, explained, pieces

    def _not_masked(
        self, only: tuple[list[Piece], list[Piece]], left: StepFacts, right: StepFacts
    ) -> tuple[list[Piece], list[Piece]]:
        """Leave out results of which the settings ignore a part: the calls themselves are compared."""

        def kept(pieces: list[Piece], side: int, at: StepFacts) -> list[Piece]:
            steps = (next(self._runs[side].sources(piece, at), None) for piece in pieces)
            paths = self._texts.masks.paths
            return [
                piece
                for piece, step in zip(pieces, steps, strict=True)
                if piece.role != "tool" or step is None or not paths(TOOL, step.name, "result")
            ]

        return kept(only[0], 0, left), kept(only[1], 1, right)

    def _piece_roots(self, pieces: list[list[Piece]], is_edit: bool) -> list[tuple[str, str, str]]:
        roles = {piece.role for side in pieces for piece in side}
        roots: list[tuple[str, str, str]] = []
        if is_edit:
            roots.append((report.PROMPT, "history", "history"))
            roles -= {"assistant", "tool"}
        if "system" in roles:
            roots.append((report.PROMPT, "system", "messages"))
        if roles & {"assistant", "tool"}:
            roots.append((report.CODE, "", "messages"))
        elif "user" in roles and not is_edit:
            roots.append((report.INPUT, "", "messages"))
        return roots

    def _explains(self, piece: Piece, side: int, at: StepFacts) -> Found | None:
        """Return the difference that explains why only one run has a piece."""
        if piece.role not in ("tool", "assistant"):
            return None
        steps = islice(self._runs[side].sources(piece, at), _SOURCES)
        found = (self.of_step[side].get(step.number) for step in steps)
        return next((each for each in found if each is not None), None)

    def _by_text(self, left: StepFacts, right: StepFacts, pieces: list[list[Piece]]) -> Found | None:
        """Return the difference whose texts stand in the pieces that differ."""
        if not self.found or not any(pieces) or not (pieces[0] and pieces[1]):
            return None
        texts = self._texts.of_pieces(left, right, pieces)
        return self._repeats(*texts)

    def _repeats(self, left: str, right: str) -> Found | None:
        """Return the difference in whose steps two texts stand, as far as they differ."""
        parts = self._texts.searched(left, right)
        if parts is None:
            return None
        for found in reversed(self.found[-_REMEMBERED:]):
            if found.left and found.right and self._texts.hold(found.left[0], found.right[0], parts):
                return found
        return None

    # tools, events, the end -------------------------------------------------------------------------

    def _tool(self, left: StepFacts, right: StepFacts) -> None:
        differs = left.output != right.output or left.error != right.error
        if left.args == right.args and left.name == right.name:
            self.equal_outputs.append((left, right))
            if not differs:
                self._hide(left, right, "tool call", left.lost | right.lost)
                return
            is_error = left.error != right.error
            part = "error" if is_error else "result"
            by = self._repeats(self._texts.output(left), self._texts.output(right)) if self.found else None
            self._add(report.ERROR if is_error else report.OUTPUT, [left], [right], [part], follows=by)
            return
        parts = ["args", *(["error" if left.error != right.error else "result"] if differs else [])]
        by = self._of(left.by, right.by)
        if by is not None:
            self._add(report.ARGS, [left], [right], parts, follows=by)
        elif left.by is not None and right.by is not None:
            self._add(report.CODE, [left], [right], parts)
        else:
            by = self._repeats(self._texts.args(left), self._texts.args(right)) if self.found else None
            self._add(report.ARGS, [left], [right], parts, follows=by)

    def _event(self, left: StepFacts, right: StepFacts, state: _Lane) -> None:
        if (left.args, left.output, left.error) == (right.args, right.output, right.error):
            self._hide(left, right, left.kind, left.lost | right.lost)
            return
        if left.kind == INPUT:
            self._add(report.INPUT, [left], [right], ["input"])
        elif left.kind == END:
            self._add(report.END, [left], [right], ["end"], follows=self._last_root(state))
        else:
            by = self._repeats(self._texts.args(left), self._texts.args(right)) if self.found else None
            is_error = left.kind == EVENT and left.error is not None
            by = by or (state.last if is_error else None)
            self._add(report.CODE, [left], [right], ["event"], follows=by)

    def _last_root(self, state: _Lane) -> Found | None:
        """Return what most likely led to the end: the latest difference of the lane, else of the run."""
        return state.last or (self.found[-1] if self.found else None)

    # steps of only one run --------------------------------------------------------------------------

    def _one_sided(self, left: StepFacts | None, right: StepFacts | None, state: _Lane) -> None:
        side = 0 if left is not None else 1
        step = left or right
        assert step is not None
        if step.request is not None:
            state.added[side].extend(step.request.added)
            state.dropped[side].extend(step.request.dropped)
        group = state.one_sided
        if group is not None and bool(group.left) == (side == 0):
            (group.left if side == 0 else group.right).append(step)
            self.of_step[side][step.number] = group
            if group.follows is None:
                self._name_group(group, side)
            return
        by = self._of(step.by, None) if side == 0 and step.by is not None else None
        by = self.of_step[1].get(step.by.number) if side == 1 and step.by is not None else by
        by = by or state.last
        steps: tuple[list[StepFacts], list[StepFacts]] = ([], [])
        steps[side].append(step)
        found = self._add(report.MISSING if side == 0 else report.EXTRA, *steps, [], follows=by)
        if by is None:
            self._name_group(found, side)
        state.one_sided = state.last = found

    def _name_group(self, group: Found, side: int) -> None:
        """Choose the cause of steps that only one run has."""
        steps = group.left if side == 0 else group.right
        cause = report.MISSING if side == 0 else report.EXTRA
        if all(step.kind == TOOL and step.by is not None for step in steps):
            cause = report.CODE  # the response that would request it is the same in both runs
        if _repeats_neighbours(steps, self._runs[side].steps):
            cause = report.LOOP
        group.cause, group.why = cause, BECAUSE[cause]


def _repeats_neighbours(steps: list[StepFacts], run: list[StepFacts]) -> bool:
    """True if the calls in some steps are also made right before or after them."""

    def calls(some: Iterable[StepFacts]) -> set[tuple[str, Digest | None]]:
        return {(step.name, step.args) for step in some if step.kind == TOOL}

    own = calls(steps)
    first = bisect_left(run, steps[0].number, key=lambda step: step.number)
    last = bisect_left(run, steps[-1].number, key=lambda step: step.number) + 1
    size = len(steps) + 1
    near = calls(run[max(0, first - size) : first]) | calls(run[last : last + size])
    if own:
        return own <= near
    keys = {step.key for step in steps}
    return keys <= {step.key for step in (*run[max(0, first - size) : first], *run[last : last + size])}


def _answer_parts(left: StepFacts, right: StepFacts) -> list[str]:
    """Return in which ways two responses differ, the most important first."""
    one, other = left.answered, right.answered
    if left.error != right.error or (one is None) != (other is None):
        return ["error"]
    if one is None or other is None:
        return []
    parts = ["decision"] if one.words.uses != other.words.uses else []
    parts += ["text"] if one.words.text != other.words.text else []
    if not parts:
        parts += ["stop"] if one.stop != other.stop else []
        parts += ["reasoning"] if one.words.reasoning != other.words.reasoning else []
    if not parts and one.model != other.model and one.model and other.model:
        parts = ["served"]
    return parts


def _lost_in_request(left: StepFacts, right: StepFacts) -> frozenset[str]:
    return frozenset().union(*(step.request.lost for step in (left, right) if step.request is not None))


def _part_of_setting(key: str) -> str:
    return key if key in ("system", "tools", "model") else "settings"


def _cancelled(left: list[Piece], right: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """Return what only one of two lists has; ids do not count."""
    if [piece[:2] for piece in left] == [piece[:2] for piece in right]:
        return [], []
    return _beyond(left, right), _beyond(right, left)


def _beyond(some: list[Piece], others: list[Piece]) -> list[Piece]:
    often = Counter(piece[:2] for piece in others)
    found = []
    for piece in some:
        if often[piece[:2]] > 0:
            often[piece[:2]] -= 1
        else:
            found.append(piece)
    return found
