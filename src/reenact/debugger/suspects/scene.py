"""A run prepared for the search: its turns, what was new in each prompt, each tool call with its outcome.

Read once, and shared by all rules. A prompt is compared with the one before it, so that a run costs what is
new in it, not every prompt again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ...recording.calls import TOOL, Call
from ...recording.prompt import Delta, Keys, Piece, answer_pieces, opened, prompt_of
from ...recording.recording import Recording
from ...tracefile.events.event import ErrorText, Event
from ...tracefile.events.event_text import address, error_text
from ...tracefile.events.text import call_text, plain, short_json
from ...wire.json_values import canonical, mapping, string
from ...wire.neutral import REASONING, TEXT
from ...wire.reading import TOOLS, tool_declarations
from ...wire.result_signs import failure_in, is_empty, rest_of, value_of
from ...wire.results import result_text
from ..ending import died_without_a_word, ending_error
from ..story import Block, Story, call_key
from .suspect import Suspect

WIDE = 120
_SOON = 6
"""Calls of a tool before and after a failed one that are looked at."""

_ADMITS = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure|ing)?|unable|unfortunately|sorry|apologi[sz]e|issues?|problems?|"
    r"unavailable|invalid|exception|missing|incorrect|wrong|discrepancy|not (?:found|able|available|"
    r"possible|exist|work\w*|permitted|allowed|eligible|valid)|(?:could|can|did|does|do|was|were|is|are|"
    r"has|have)(?: ?not|n[’']t)|no (?:\w+ ){0,3}(?:results?|match\w*|records?|data|flights?|found|"
    r"available|options?)|none|nothing|empty|retry|try again|instead|declined|denied|rejected|timed? ?out|"
    r"truncated|partial|incomplete|only the first|more (?:results|pages|rows))\b",
    re.IGNORECASE,
)
"""Words with which a model admits that something went wrong."""


_WRITES = frozenset(
    "add apply approve assign book buy cancel charge create debit delete deploy deposit drop "
    "email insert issue merge notify order pay payment place post publish purchase refund "
    "register remove reserve schedule send submit transfer withdraw".split()
)
"""Words in the name of a tool that changes the world: a second equal call does so again."""

_READS = frozenset(
    "check count describe fetch find get list load look lookup query read retrieve scan search "
    "select show view".split()
)


def words_of(tool: str) -> list[str]:
    """Return the words of a tool's name.

    >>> words_of("getUser_byId")
    ['get', 'user', 'by', 'id']
    """
    spaced = "".join(f" {char}" if char.isupper() else char for char in tool)
    return [word for word in "".join(c if c.isalnum() else " " for c in spaced).lower().split() if word]


class Use:
    """One call of a tool with its outcome."""

    def __init__(self, call: Call, step: Step) -> None:
        self.call = call
        self.step = step
        self.tool = call.tool or "?"

    @cached_property
    def name_words(self) -> frozenset[str]:
        return frozenset(words_of(self.tool))

    @property
    def reads(self) -> bool:
        """True if its name says that it only looks something up."""
        return not _READS.isdisjoint(self.name_words)

    @property
    def writes(self) -> bool:
        """True if its name says that it changes something."""
        return not self.reads and not _WRITES.isdisjoint(self.name_words)

    @property
    def succeeded(self) -> bool:
        """True if it brought something."""
        return not self.call.is_open and self.failure is None and not (self.is_empty and self.reads)

    @cached_property
    def args(self) -> Any:
        return self.call.args

    @cached_property
    def result(self) -> Any:
        """What it returned, as data where it is the text of data."""
        return value_of(self.call.result)

    @cached_property
    def failure(self) -> str | None:
        """What went wrong in it: its exception, or what its result says; None if it succeeded."""
        if self.call.error is not None:
            return error_text(self.call.error)
        end = self.call.end
        return None if end is None or end.is_partial else failure_in(self.result)

    @cached_property
    def is_empty(self) -> bool:
        end = self.call.end
        return end is not None and self.call.error is None and not end.is_partial and is_empty(self.result)

    @cached_property
    def rest(self) -> str | None:
        """The words with which its result says that it is not all."""
        end = self.call.end
        return None if end is None or end.is_partial or self.failure is not None else rest_of(self.result)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What is the same for calls with equal arguments and equal results."""
        return call_key(self.call)

    @property
    def at(self) -> Event:
        """The event of its outcome."""
        return self.call.end or self.call.event

    @property
    def words(self) -> str:
        return call_text(self.tool, self.args, WIDE)

    @property
    def sent(self) -> str:
        """What the model was sent for it."""
        return "" if self.call.sent is None else short_json(result_text(self.call.sent.value), WIDE)


class Step:
    """One turn, or what stands before the first, with what follows it in its lane."""

    def __init__(self, block: Block, scene: Scene) -> None:
        self.block = block
        self.turn = block.turn
        self.number = block.number
        self.uses = [Use(item, self) for item in block.items if isinstance(item, Call) and item.kind == TOOL]
        self.next: Step | None = None
        """The next turn of its lane."""
        self._scene = scene

    @cached_property
    def prompt(self) -> Delta:
        """What was new in its prompt."""
        if self.turn is None:
            return Delta([], [])
        block = self.block
        return prompt_of(self.turn, block.before, self._scene.keys, block.run_index, is_far=block.is_far)

    @cached_property
    def answer(self) -> list[Piece]:
        end = self.turn.response if self.turn is not None else None
        return [] if end is None or end.is_partial else answer_pieces(end)

    @cached_property
    def text(self) -> str:
        """What the model wrote, without its reasoning and its tool uses."""
        return "\n".join(piece.text for piece in self.answer if piece.sort == TEXT)

    @cached_property
    def thoughts(self) -> str:
        return "\n".join(piece.text for piece in self.answer if piece.sort in (TEXT, REASONING))

    @property
    def admits(self) -> bool:
        """True if the model writes that something went wrong."""
        return _ADMITS.search(self.thoughts) is not None

    def later(self, most: int) -> Iterator[Step]:
        """Yield the next turns of its lane."""
        step = self.next
        while step is not None and most > 0:
            yield step
            step, most = step.next, most - 1


class Scene:
    """What the rules look at."""

    def __init__(self, story: Story, recording: Recording) -> None:
        self.story = story
        self.recording = recording
        self.keys = Keys()
        self.steps = [Step(block, self) for block in story.blocks]
        last: dict[str, Step] = {}
        for step in self.steps:
            if step.turn is not None:
                if step.block.lane in last:
                    last[step.block.lane].next = step
                last[step.block.lane] = step
        self.last = next((step for step in reversed(self.steps) if step.turn is not None), None)
        self.uses = [use for step in self.steps for use in step.uses]
        self.of_tool: dict[str, list[Use]] = {}
        for use in self.uses:
            self.of_tool.setdefault(use.tool, []).append(use)
        self._place = {id(use): place for uses in self.of_tool.values() for place, use in enumerate(uses)}

    @property
    def is_whole(self) -> bool:
        return self.story.is_whole

    @cached_property
    def ended_with(self) -> ErrorText | None:
        return ending_error(self.recording)

    @cached_property
    def is_dead(self) -> bool:
        return died_without_a_word(self.recording)

    def ended_by(self, error: ErrorText | None) -> bool:
        """True if the run ended with this error."""
        return error is not None and self.ended_with is not None and str(error) in str(self.ended_with)

    def others_after(self, use: Use, most: int) -> list[Use]:
        """Return the next calls of the same tool."""
        place = self._place[id(use)] + 1
        return self.of_tool[use.tool][place : place + most]

    def recovers(self, use: Use) -> bool:
        """True if a later call made up for one that failed: with equal arguments, or soon with other ones.

        Of a tool that is called for one thing after the other, another thing makes up for nothing.
        """
        last = self._last_success.get((use.tool, canonical(use.args)))
        if last is not None and last > self._place[id(use)]:
            return True
        uses, place = self.of_tool[use.tool], self._place[id(use)]
        is_one_of_many = any(each.succeeded for each in uses[max(0, place - _SOON) : place])
        return not is_one_of_many and any(each.succeeded for each in self.others_after(use, _SOON))

    @cached_property
    def _last_success(self) -> dict[tuple[str, str], int]:
        return {
            (tool, canonical(use.args)): place
            for tool, uses in self.of_tool.items()
            for place, use in enumerate(uses)
            if use.succeeded
        }

    def suspect(self, kind: str, confidence: float, event: Event, evidence: str) -> Suspect:
        where = address(event, self.recording.first_writer)
        return Suspect(kind, round(confidence, 2), plain(evidence, 600), where, event=event)

    @cached_property
    def declared(self) -> dict[int, dict[str, dict[str, Any]]]:
        """By the number of a turn: the tools that its request offers, by name, with description and schema.

        Looked up in what each line holds; a request that keeps those of the one before does not repeat them.
        """
        found: dict[int, dict[str, dict[str, Any]]] = {}
        known: dict[str, dict[str, dict[str, Any]]] = {}
        for step in self.steps:
            if step.turn is None or step.turn.request.is_partial:
                continue
            request = step.turn.request
            body = mapping(request.stored_fields.get("body"))
            offered = next((body[key] for key in TOOLS if body.get(key)), None)
            lane = step.block.lane
            if offered is not None:
                known[lane] = _by_name(opened(request, offered))
            found[step.number] = known.get(lane) or next(iter(known.values()), {})
        return found


def _by_name(tools: Any) -> dict[str, dict[str, Any]]:
    return {name: one for _, one in tool_declarations(tools) if (name := string(one.get("name"))) is not None}
