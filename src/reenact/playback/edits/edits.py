"""The changes of a fork from its cut on: to the agent's requests, an answer, a tool's result.

Pure: bodies in, bodies out; the caller sends them. Edits are plain data, so they can be written to a run's
first line and passed to the agent's process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import UsageError
from ...wire import reading
from ..matching.recorded_answers import Answer
from ..matching.request import HTTP, TOOL
from ..matching.tape import RecordedCall, Tape
from .conversation import (
    DROP,
    Change,
    apply_changes,
    changed,
    drops,
    field_change,
    injection,
    is_signed,
    result_change,
    stripped,
)
from .cut_request import CutRequest, conversation_of, digest, endpoint_of
from .request_settings import MODEL, NEUTRAL, SYSTEM, Setting, with_setting
from .responses import answered, parsed, response_body, tool_answered

# Texts of command-line options: literal, or ``@FILE``.


def read_text(option: str | None, flag: str) -> str | None:
    """Return the text of an option: ``@FILE`` reads the file, ``@@…`` begins with a literal ``@``."""
    if option is None or not option.startswith("@"):
        return option
    if option.startswith("@@"):
        return option[1:]
    path = option[1:]
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as why:
        raise UsageError(f"{flag}: {path} is not UTF-8 text", hint="@FILE reads a text file") from why
    except OSError as why:
        reason = why.strerror or type(why).__name__
        raise UsageError(
            f"{flag}: {path!r} cannot be read: {reason}", hint="write @@… for a text that begins with @"
        ) from why


class EditedRequest(NamedTuple):
    """A request ready to be sent."""

    body: Any
    url: str
    notes: tuple[str, ...] = ()
    """Changes that could not be made, and what was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The changes of a fork; ``parse`` reads them from command-line options."""

    sets: tuple[Setting, ...] = ()
    inject_user: str | None = None
    drop: tuple[int, ...] = ()
    tool_result: str | None = None
    tool: str | None = None
    """Id or name of the tool for ``tool_result``, if a request carries several results."""
    response: str | None = None
    once: bool = False
    """Change only the request at the cut, not those after it."""

    def __post_init__(self) -> None:
        if self.tool is not None and self.tool_result is None:
            raise UsageError(
                "--tool needs a result for the tool",
                hint="add --tool-result '…' (in Python: tool_result='…')",
            )

    @classmethod
    def parse(
        cls,
        *,
        sets: Sequence[str] = (),
        inject_user: str | None = None,
        drop: Sequence[int] = (),
        tool_result: str | None = None,
        tool: str | None = None,
        response: str | None = None,
        once: bool = False,
    ) -> Edits:
        """Return the edits of these options: ``NAME=VALUE``, ``NAME+=TEXT``, ``@FILE`` for any value."""
        return cls(
            sets=tuple(map(_setting, sets)),
            inject_user=read_text(inject_user, "--inject-user"),
            drop=tuple(drop),
            tool_result=read_text(tool_result, "--tool-result"),
            tool=tool,
            response=read_text(response, "--response"),
            once=once,
        )

    def as_json(self) -> dict[str, Any]:
        """Return them as plain data, without unused ones."""
        fields = {
            "set": [setting._asdict() for setting in self.sets], "inject_user": self.inject_user,
            "drop": list(self.drop), "tool_result": self.tool_result, "tool": self.tool,
            "response": self.response, "once": self.once or None,
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value is not None and value != []}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Edits:
        """Return the edits of ``as_json``."""
        rest = {name: value for name, value in fields.items() if name not in ("set", "drop")}
        sets = tuple(Setting(**each) for each in fields.get("set", ()))
        return cls(sets=sets, drop=tuple(fields.get("drop", ())), **rest)

    def __bool__(self) -> bool:
        return self.changes_requests or self.replaces_answer

    @property
    def changes_requests(self) -> bool:
        return bool(self.sets or self.drop or self.inject_user is not None or self.replaces_tool_result)

    @property
    def replaces_answer(self) -> bool:
        return self.response is not None

    @property
    def replaces_tool_result(self) -> bool:
        return self.tool_result is not None

    def check(self, call: RecordedCall, tape: Tape) -> None:
        """Raise UsageError if these edits cannot be made at that call."""
        if not self:
            return
        if call.kind == HTTP:
            raise UsageError(
                f"{call.label()} is neither a model call nor a tool call: nothing in it can be changed",
                hint="cut at a model call or a tool call",
            )
        if call.kind == TOOL:
            self._check_tool(call, tape)
            return
        cut = CutRequest.at(call, tape)
        if not cut.body:
            raise UsageError(
                f"the request of {call.label()} is not a recorded JSON object",
                hint="cut at another call",
            )
        self._changes(cut)
        self._with_settings(cut.body, cut.url, cut, None)
        if self.response is not None:
            self._check_response(call, tape, cut)

    def _check_tool(self, call: RecordedCall, tape: Tape) -> None:
        """Check edits at a tool: its result can be replaced, settings apply from the next request on."""
        refused = {
            "--response": self.response is not None,
            "--inject-user": self.inject_user is not None,
            "--drop": bool(self.drop),
        }
        for flag, is_used in refused.items():
            if is_used:
                hint = "--tool-result changes a tool's result; " if flag == "--response" else ""
                raise UsageError(
                    f"{flag} changes a model call, but {call.label()} is a tool call",
                    hint=f"{hint}cut at the model call that follows it",
                )
        if self.sets:
            cut = CutRequest.at(call, tape)
            if any(setting.steps[0] == cut.key for setting in self.sets):
                raise UsageError("a message can only be changed at a model call", hint="cut at a model call")
            self._with_settings(cut.body, cut.url, cut, None)

    def _check_response(self, call: RecordedCall, tape: Tape, cut: CutRequest) -> None:
        assert self.response is not None
        response_body(self.response, call.answer.body, cut.provider, cut.url)
        later = (each for each in tape.calls[call.number + 1 :] if each.kind == call.kind)
        following = next((each for each in later if each.lane == call.lane), None)
        by_id = following is not None and reading.kept_conversation(following.request.body)
        if by_id or cut.body.get("conversation"):
            raise UsageError(
                "--response: the agent refers to the answer's id, and the provider knows only its own answer",
                hint="change the request instead: --inject-user or --set",
            )

    def request(self, body: Any, url: str, cut: CutRequest) -> EditedRequest:
        """Return a request with all edits that apply to it; the same object if none does."""
        if type(body) is not dict:
            return EditedRequest(body, url)
        relation = cut.relation(body, url)
        if self.once and not relation.is_cut:
            return EditedRequest(body, url)
        changes = self._changes(cut) if relation.carries or relation.shares else []
        is_other_model = relation.is_agents and self._is_other_model(cut)
        key, messages = conversation_of(body)
        stale = self._stale(changes, cut, is_other_model)
        new, notes = messages, list[str]()
        if changes:
            after = changed(cut.messages, changes, [change.at for change in changes], cut.provider)
            after = stripped(after, stale, cut.provider)
            new, notes = apply_changes(messages, changes, cut, after, carries=relation.carries)
        kept = stripped(new, stale, cut.provider)
        if kept is not new:
            new = kept
            notes.append(f"signed thinking was left out {_WHY[is_other_model]}")
        edited = {**body, key: new} if key is not None and new is not messages else body
        if relation.is_agents:
            edited, url = self._with_settings(edited, url, cut, notes)
            if self.response is not None and reading.kept_conversation(body):
                notes.append("this request refers to the id of an answer that the provider never sent")
        elif self.sets:
            notes.append(f"a request to {endpoint_of(url)} kept its settings: {_OTHER_AGENT}")
        return EditedRequest(edited, url, tuple(dict.fromkeys(notes)))

    def answer(self, answer: Answer, provider: str | None, url: str, is_stream: bool) -> Answer:
        """Return the answer at the cut, replaced if the edits say so."""
        if self.response is None:
            return answer
        return answered(self.response, answer, provider, url, is_stream=is_stream)

    def tool_answer(self, answer: Answer) -> Answer:
        """Return the result of the tool at the cut, replaced if the edits say so."""
        return answer if self.tool_result is None else tool_answered(self.tool_result, answer)

    def _changes(self, cut: CutRequest) -> list[Change]:
        """Return the changes in the conversation; UsageError if one cannot be made."""
        ends_with_user = self.inject_user is not None
        changes = drops(list(self.drop), cut, ends_with_user=ends_with_user) if self.drop else []
        if self.tool_result is not None and not cut.is_tools:
            changes.append(result_change(self.tool_result, self.tool, cut))
        for setting in self._of_messages(cut):
            changes.append(field_change(setting.steps, setting.value, cut))
        dropped = {change.at for change in changes if change.kind == DROP}
        for change in changes:
            if change.kind != DROP and change.at in dropped:
                raise UsageError(
                    f"message {change.at + 1} is both dropped and changed", hint="do only one of the two"
                )
        if self.inject_user is not None:
            changes.append(injection(self.inject_user, cut, dropped))
        return changes

    def _of_messages(self, cut: CutRequest) -> list[Setting]:
        return [setting for setting in self.sets if setting.steps[0] == cut.key]

    def _with_settings(
        self, body: dict[str, Any], url: str, cut: CutRequest, notes: list[str] | None
    ) -> tuple[dict[str, Any], str]:
        """Return body and URL with all settings; one without a place is noted, or raised without notes."""
        for setting in self.sets:
            if setting.steps[0] == cut.key:
                continue
            try:
                is_new = len(setting.steps) == 1 and setting.name not in {*NEUTRAL, *body, *cut.body}
                body, url = with_setting(body, url, setting, cut)
                if is_new and notes is not None:
                    notes.append(f"--set {setting.name}: the request had no field of that name before")
            except UsageError as why:
                if notes is None:
                    raise
                notes.append(f"--set {setting.name}: {why}")
        return body, url

    def _is_other_model(self, cut: CutRequest) -> bool:
        named = [setting.value for setting in self.sets if setting.name == MODEL]
        return bool(named) and named[-1] != reading.model_of(cut.body, cut.url)

    def _stale(self, changes: list[Change], cut: CutRequest, is_all: bool) -> set[bytes]:
        """Return digests of the messages that lose signed thinking: those after the first change, or all."""
        if not changes and not is_all:
            return set()
        start = 0 if is_all else 1 + min(change.at for change in changes)
        return {digest(each) for each in cut.messages[start:] if is_signed(each)}


_OTHER_AGENT = "its endpoint, prompt, tools or model show that it comes from another agent"
_WHY = {
    True: "for another model: it is valid only for the model that wrote it",
    False: "after the change: it is valid only for the conversation it was written in",
}


def _setting(text: str) -> Setting:
    name, equals, value = text.partition("=")
    is_append = name.endswith("+")
    name = name.removesuffix("+").strip()
    if not equals or not name:
        raise UsageError(
            f"--set {text!r} is not NAME=VALUE",
            hint="--set system=@prompt.txt, --set model=NAME, --set temperature=0, --set system+=' Be brief'",
        )
    value = read_text(value, f"--set {name}") or ""
    if is_append:
        return Setting(name, value, True)
    found = parsed(value)
    if name == MODEL:
        return Setting(name, value.strip())
    if name == SYSTEM and not (found is None or type(found) in (list, dict)):
        return Setting(name, value)
    return Setting(name, found)


def needs_signature(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> bool:
    """True if a request is signed as a whole (AWS SigV4) and cannot be changed any more."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return any(
        name.lower() == "authorization" and value.lstrip().upper().startswith("AWS4-")
        for name, value in pairs
    )
