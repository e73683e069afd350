"""``--set``: system prompt, model, tools and parameters of a request, each in its provider's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from ...errors import UsageError
from ...wire import reading
from ...wire.json_values import mapping, string
from ...wire.neutral import text_blocks
from ...wire.providers import named, option_place
from .cut_request import CutRequest, conversation_of, model_in, system_count

SYSTEM, MODEL, TOOLS = "system", "model", "tools"
NEUTRAL = (SYSTEM, MODEL, TOOLS)
"""Names that mean the same for every provider."""

_ONLY_WITH_TOOLS = ("tool_choice", "parallel_tool_calls", "toolChoice", "toolConfig", "tool_config")


class Setting(NamedTuple):
    """One ``--set``."""

    name: str
    value: Any
    """JSON; None removes the field."""
    is_append: bool = False

    @property
    def steps(self) -> list[str]:
        return steps_of(self.name)


def settings_of(changes: Mapping[str, Any] | None) -> tuple[Setting, ...]:
    """Return the settings of ``changes=`` in Python; texts are taken as they are."""
    return tuple(Setting(name, value) for name, value in (changes or {}).items())


def with_setting(
    body: dict[str, Any], url: str, setting: Setting, cut: CutRequest
) -> tuple[dict[str, Any], str]:
    """Return body and URL of a request with one setting; UsageError if it has no place in it."""
    if setting.name == SYSTEM:
        return (_with_more_system if setting.is_append else _with_system)(body, setting, cut), url
    if setting.name == MODEL:
        return _with_model(body, url, _appended(setting, reading.model_of(body, url), None), cut.provider)
    if setting.name == TOOLS:
        return _with_tools(body, setting, cut.provider), url
    steps = setting.steps
    if len(steps) == 1 and steps[0] not in body:
        place = option_place(named(cut.provider), steps[0])
        if steps[0] == "max_tokens" and "max_completion_tokens" in body:
            place = ("max_completion_tokens",)
        if place != (steps[0],):
            return _with_place(body, place, setting.value), url
    new = _appended(setting, _there(body, steps), _there(cut.body, steps))
    changed: dict[str, Any] = with_path(body, steps, new)
    return changed, url


def _there(body: dict[str, Any], steps: list[str]) -> Any:
    try:
        return at_path(body, steps)
    except UsageError:
        return None


def _appended(setting: Setting, text: Any, at_cut: Any) -> Any:
    """Return the new value; a text that is appended already is not appended twice."""
    if not setting.is_append:
        return setting.value
    if type(setting.value) is not str or not (text is None or type(text) is str):
        raise UsageError(
            f"{setting.name} is not a text, so nothing can be appended to it",
            hint=f"--set {setting.name}=… replaces it",
        )
    text = text or ""
    if text != at_cut and text.endswith(setting.value):
        return text
    return text + setting.value


def _with_place(body: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    if len(place) == 1:
        return _without(body, place[0]) if value is None else {**body, place[0]: value}
    inner = {key: each for key, each in mapping(body.get(place[0])).items() if key != place[1]}
    return {**body, place[0]: inner if value is None else {**inner, place[1]: value}}


def _system_key(body: dict[str, Any]) -> str | None:
    return next((key for key in reading.SYSTEM if body.get(key) is not None), None)


def _with_more_system(body: dict[str, Any], setting: Setting, cut: CutRequest) -> dict[str, Any]:
    """Return the body with a text appended to the last text of its system prompt."""
    key = _system_key(body)
    if key is not None:
        return {**body, key: _grown(body[key], setting, cut.body.get(key))}
    name, messages = conversation_of(body)
    last = system_count(messages) - 1
    if last < 0:
        return _with_system(body, setting, cut)
    at_cut = mapping(cut.messages[last]).get("content") if last < len(cut.messages) else None
    grown = {**messages[last], "content": _grown(messages[last].get("content"), setting, at_cut)}
    return {**body, name or "messages": [*messages[:last], grown, *messages[last + 1 :]]}


def _grown(old: Any, setting: Setting, at_cut: Any) -> Any:
    if type(old) is dict and "parts" in old:
        return {**old, "parts": _grown(old["parts"], setting, mapping(at_cut).get("parts"))}
    if type(old) is not list:
        return _appended(setting, old, at_cut)
    place = max((n for n, block in enumerate(old) if string(mapping(block).get("text"))), default=None)
    if place is None:
        return [*old, {"text": setting.value}]
    then = at_cut[place] if type(at_cut) is list and place < len(at_cut) else None
    text = _appended(setting, old[place]["text"], mapping(then).get("text"))
    return [*old[:place], {**old[place], "text": text}, *old[place + 1 :]]


def _with_system(body: dict[str, Any], setting: Setting, cut: CutRequest) -> dict[str, Any]:
    """Return the body with a new system prompt, in the place of the old one or else the provider's."""
    value = None if setting.value == "" else setting.value
    key = _system_key(body)
    provider = named(cut.provider)
    is_message = cut.provider is not None and not provider.SYSTEM_KEYS and "messages" in cut.body
    if key is None and (system_count(conversation_of(body)[1]) or is_message):
        return _with_system_message(body, value)
    key = key or next(iter(provider.SYSTEM_KEYS), "system")
    if value is None:
        return _without(body, key)
    return {**body, key: provider.system_value(body.get(key), value) if type(value) is str else value}


def _with_system_message(body: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return the body with its leading system messages replaced by one."""
    key, messages = conversation_of(body)
    count = system_count(messages)
    first = messages[0] if count else {"role": "system"}
    rest = messages[count:]
    if value is not None:
        old = first.get("content")
        content = text_blocks(old, value) if type(old) is list and type(value) is str else value
        rest = [{**first, "content": content}, *rest]
    return {**body, key or "messages": rest}


def _with_model(
    body: dict[str, Any], url: str, value: Any, provider: str | None
) -> tuple[dict[str, Any], str]:
    if type(value) is not str or not value:
        raise UsageError("a model needs a name", hint="--set model=NAME")
    place = model_in(url)
    if place is not None:
        name = value.removeprefix("models/") if provider == "gemini" else value
        url = url[: place[0]] + quote(name, safe="@.") + url[place[1] :]
    if "model" in body or place is None:
        body = {**body, "model": value}
    return body, url


def _with_tools(body: dict[str, Any], setting: Setting, provider: str | None) -> dict[str, Any]:
    value = setting.value
    if setting.is_append or not (value is None or type(value) is list):
        raise UsageError(
            "tools must be a JSON list in the provider's shape",
            hint="--set tools=@tools.json; one of them: --set tools.0.description=…",
        )
    key, *inner = named(provider).TOOLS_PATH
    if inner:
        config = {**mapping(body.get(key)), inner[0]: value}
        return {**body, key: config} if value else _without(body, key)
    return {**body, "tools": value} if value else _without(body, "tools", *_ONLY_WITH_TOOLS)


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in names}


# Places in a JSON value by name: ``tools.0.description`` or ``/tools/0/description``. Nothing is changed in
# place; values off the path are shared.


def steps_of(name: str) -> list[str]:
    """Return the steps of a path, dotted or a JSON pointer."""
    if not name.startswith("/"):
        return name.split(".")
    return [step.replace("~1", "/").replace("~0", "~") for step in name[1:].split("/")]


def at_path(value: Any, steps: list[str]) -> Any:
    """Return the value at a path; UsageError if there is none."""
    for number, step in enumerate(steps):
        value = value[_key(value, step, steps[:number])]
    return value


def with_path(value: Any, steps: list[str], new: Any, walked: Sequence[str] = ()) -> Any:
    """Return the value with ``new`` at the path; None removes it. Only a top-level name may be new."""
    step = steps[0]
    is_new = not walked and len(steps) == 1 and type(value) is dict and step not in value
    key = step if is_new else _key(value, step, walked)
    copy: Any = list(value) if type(value) is list else dict(value)
    if len(steps) > 1:
        copy[key] = with_path(value[key], steps[1:], new, [*walked, step])
    elif new is not None:
        copy[key] = new
    elif not is_new:
        del copy[key]
    return copy


def _key(value: Any, step: str, walked: Sequence[str]) -> Any:
    """Return the key or index of a step in a value."""
    if type(value) is dict:
        if step in value:
            return step
        there = ", ".join(map(str, list(value)[:12])) or "nothing"
    elif type(value) is list:
        digits = step.removeprefix("-")
        if digits.isdecimal() and len(digits) < 10 and -len(value) <= int(step) < len(value):
            return int(step)
        there = f"0 to {len(value) - 1}" if value else "an empty list"
    else:
        there = f"a {type(value).__name__}, which has no parts"
    raise UsageError(
        f"there is no {'.'.join([*walked, step])} in the request",
        hint=f"at {'.'.join(walked) or 'the top'} there is: {there}; only a name at the top may be new",
    )
