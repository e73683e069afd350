"""What a fork changes from its cut on: requests of the agent, an answer, a tool's result.

Pure: bodies in, bodies out; who asks sends them. Plain data inside, so that edits can be told in a run's
first line and sent to the agent's process.
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
from .cut_request import CutRequest, conversation_of, digest, endpoint_of
from .messages import DROP, Change, changed, drops, field_change, injection, made_in, result_change
from .responses import answered, parsed, response_body, tool_answered
from .settings import MODEL, NEUTRAL, SYSTEM, Setting, with_setting
from .signatures import is_signed, stripped

# Texts as a person gives them to a command: as they are, or ``@FILE``.


def read_text(told: str | None, flag: str) -> str | None:
    """Return the text; of ``@FILE`` what the file holds, of ``@@…`` all but the first character."""
    if told is None or not told.startswith("@"):
        return told
    if told.startswith("@@"):
        return told[1:]
    path = told[1:]
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as why:
        raise UsageError(f"{flag}: {path} is not UTF-8 text", hint="@FILE reads a text file") from why
    except OSError as why:
        reason = why.strerror or type(why).__name__
        raise UsageError(
            f"{flag}: {path!r} cannot be read: {reason}", hint="a text that begins with @ is written @@…"
        ) from why


__all__ = ["CutRequest", "EditedRequest", "Edits", "needs_signature"]


class EditedRequest(NamedTuple):
    """A request as it is to be sent."""

    body: Any
    url: str
    notes: tuple[str, ...] = ()
    """What could not be done, and what was taken out on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What is changed; ``given`` reads it as a person writes it."""

    sets: tuple[Setting, ...] = ()
    inject_user: str | None = None
    drop: tuple[int, ...] = ()
    tool_result: str | None = None
    tool: str | None = None
    """Id or name of the tool that ``tool_result`` is of, where a request brings several."""
    response: str | None = None
    once: bool = False
    """Only the request at the cut is changed, not those that follow it."""

    @classmethod
    def given(
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
        """Return the edits that these texts are: ``NAME=VALUE``, ``NAME+=TEXT``, ``@FILE`` for any value."""
        if tool is not None and tool_result is None:
            raise UsageError("a tool without a result for it", hint="--tool-result '…' says what it gave")
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
        """Return them as plain data, without what is not used."""
        told = {
            "set": [setting._asdict() for setting in self.sets], "inject_user": self.inject_user,
            "drop": list(self.drop), "tool_result": self.tool_result, "tool": self.tool,
            "response": self.response, "once": self.once or None,
        }  # fmt: skip
        return {name: value for name, value in told.items() if value is not None and value != []}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Edits:
        """Return the edits that ``as_json`` told."""
        rest = {name: value for name, value in told.items() if name not in ("set", "drop")}
        sets = tuple(Setting(**each) for each in told.get("set", ()))
        return cls(sets=sets, drop=tuple(told.get("drop", ())), **rest)

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
                hint="cut at a model call or at a tool's",
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
        """A tool's result can be replaced there, and settings hold from the next request on."""
        refused = {
            "--response": self.response is not None,
            "--inject-user": self.inject_user is not None,
            "--drop": bool(self.drop),
        }
        for flag, is_given in refused.items():
            if is_given:
                hint = "--tool-result is what a tool gives; " if flag == "--response" else ""
                raise UsageError(
                    f"{flag} changes a model call, but {call.label()} is a tool's",
                    hint=f"{hint}cut at the model call that follows it",
                )
        if self.sets:
            cut = CutRequest.at(call, tape)
            if any(setting.steps[0] == cut.key for setting in self.sets):
                raise UsageError("a message is changed at a model call", hint="cut at one")
            self._with_settings(cut.body, cut.url, cut, None)

    def _check_response(self, call: RecordedCall, tape: Tape, cut: CutRequest) -> None:
        assert self.response is not None
        response_body(self.response, call.answer.body, cut.provider, cut.url)
        later = (each for each in tape.calls[call.number + 1 :] if each.kind == call.kind)
        following = next((each for each in later if each.lane == call.lane), None)
        by_id = following is not None and reading.kept_conversation(following.request.body)
        if by_id or cut.body.get("conversation"):
            raise UsageError(
                "--response: the agent goes on by the answer's id, and the provider has only its own answer",
                hint="--inject-user or --set change what the model is asked instead",
            )

    def request(self, body: Any, url: str, cut: CutRequest) -> EditedRequest:
        """Return a request with all that concerns it; the very same if nothing does."""
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
            new, notes = made_in(messages, changes, cut, after, carries=relation.carries)
        kept = stripped(new, stale, cut.provider)
        if kept is not new:
            new = kept
            notes.append(f"signed thinking was left out {_WHY[is_other_model]}")
        edited = {**body, key: new} if key is not None and new is not messages else body
        if relation.is_agents:
            edited, url = self._with_settings(edited, url, cut, notes)
            if self.response is not None and reading.kept_conversation(body):
                notes.append("this request goes on by the id of an answer that the provider never gave")
        elif self.sets:
            notes.append(f"a request to {endpoint_of(url)} kept its settings: {_OTHER_AGENT}")
        return EditedRequest(edited, url, tuple(dict.fromkeys(notes)))

    def answer(self, answer: Answer, provider: str | None, url: str, is_stream: bool) -> Answer:
        """Return the answer to be given at the cut in the place of the recorded one."""
        if self.response is None:
            return answer
        return answered(self.response, answer, provider, url, is_stream=is_stream)

    def tool_answer(self, answer: Answer) -> Answer:
        """Return the same of a tool that is answered itself."""
        return answer if self.tool_result is None else tool_answered(self.tool_result, answer)

    def _changes(self, cut: CutRequest) -> list[Change]:
        """Return the changes in the conversation; UsageError if one cannot be made."""
        is_spoken_to = self.inject_user is not None
        changes = drops(list(self.drop), cut, is_spoken_to=is_spoken_to) if self.drop else []
        if self.tool_result is not None and not cut.is_tools:
            changes.append(result_change(self.tool_result, self.tool, cut))
        for setting in self._of_messages(cut):
            changes.append(field_change(setting.steps, setting.value, cut))
        dropped = {change.at for change in changes if change.what == DROP}
        for change in changes:
            if change.what != DROP and change.at in dropped:
                raise UsageError(
                    f"message {change.at + 1} is to be dropped and to be changed", hint="one of the two"
                )
        if self.inject_user is not None:
            changes.append(injection(self.inject_user, cut, dropped))
        return changes

    def _of_messages(self, cut: CutRequest) -> list[Setting]:
        return [setting for setting in self.sets if setting.steps[0] == cut.key]

    def _with_settings(
        self, body: dict[str, Any], url: str, cut: CutRequest, notes: list[str] | None
    ) -> tuple[dict[str, Any], str]:
        """Return body and URL with all settings; that one has no place is noted, or raised without notes."""
        for setting in self.sets:
            if setting.steps[0] == cut.key:
                continue
            try:
                is_new = len(setting.steps) == 1 and setting.name not in {*NEUTRAL, *body, *cut.body}
                body, url = with_setting(body, url, setting, cut)
                if is_new and notes is not None:
                    notes.append(f"--set {setting.name}: nothing of that name was in the request before")
            except UsageError as why:
                if notes is None:
                    raise
                notes.append(f"--set {setting.name}: {why}")
        return body, url

    def _is_other_model(self, cut: CutRequest) -> bool:
        named = [setting.value for setting in self.sets if setting.name == MODEL]
        return bool(named) and named[-1] != reading.model_of(cut.body, cut.url)

    def _stale(self, changes: list[Change], cut: CutRequest, all_of_them: bool) -> set[bytes]:
        """Return which recorded messages lose signed thinking: those behind the first change, or all."""
        if not changes and not all_of_them:
            return set()
        behind = 0 if all_of_them else 1 + min(change.at for change in changes)
        return {digest(each) for each in cut.messages[behind:] if is_signed(each)}


_OTHER_AGENT = "by its endpoint, prompt, tools or model it is another agent's than the one at the cut"
_WHY = {
    True: "for another model: it holds only for the one that thought it",
    False: "behind the change: it holds only for the words it was thought upon",
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
    """True if a request is signed as a whole (AWS SigV4), so that it cannot be changed any more."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return any(
        name.lower() == "authorization" and value.lstrip().upper().startswith("AWS4-")
        for name, value in pairs
    )
