"""A request's messages, tools and options in one provider's shape -> in another's.

Pairs of tool uses and results are kept; what the target has no counterpart for is named. Pure and
total: any JSON values are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .json_values import as_text as text_of_value
from .json_values import call_text, mapping, mappings, plain_text, string
from .messages import content_parts, message_parts, role_of
from .neutral import (
    CommonPart,
    Conversation,
    Image,
    Losses,
    Message,
    Other,
    Reasoning,
    Text,
    Tool,
    ToolResult,
    ToolUse,
)
from .pairing import with_ids
from .providers import TARGETS as _WRITERS
from .providers import Provider, named
from .providers.gemini import result_value
from .reading import SYSTEM, tool_declarations

TARGETS = (*_WRITERS, "text")
_ELSEWHERE = frozenset({*SYSTEM, "tool_choice", "toolConfig", "tool_config"})
"""Options that are read with the messages or by a function of their own."""


class Converted(NamedTuple):
    """What a request has become."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    params: dict[str, Any]
    lost: list[str]
    """What has no counterpart, in words."""
    notes: list[str]
    """What was made up or is still missing, as sentences."""


def convert(
    messages: list[Any], tools: list[Any], params: dict[str, Any], source: str | None, target: str
) -> Converted:
    """Return a request in the shape of another provider."""
    conversation = conversation_of(messages, tools, params, source)
    writer = _WRITERS[target]
    if not writer.ID_IN_RESULTS:
        conversation.notes.clear()  # the numbered ids are not written
    written = writer.write_messages(conversation)
    options = write_options(conversation, target)
    if conversation.system:
        options |= writer.write_system("\n\n".join(conversation.system))
    for option in writer.REQUIRED_OPTIONS:
        if option not in options:
            conversation.notes.append(f"{target} needs {option}, which the recording does not have")
    model = string(conversation.options.get("model"))
    if model:
        conversation.notes.append(f"the model is still {model}; name one of {target}'s")
    declared = writer.write_tools(conversation.tools)
    return Converted(written, declared, options, conversation.lost.described(), conversation.notes)


def as_text(messages: list[Any], tools: list[Any], params: dict[str, Any], source: str | None) -> str:
    """Return a conversation to be read: roles and texts, tools by name."""
    conversation = conversation_of(messages, tools, params, source)
    blocks = [("system", text) for text in conversation.system]
    for message in conversation.messages:
        blocks += _readable_blocks(message)
    return "\n\n".join(f"{who}:\n{text}" for who, text in blocks if text) + ("\n" if blocks else "")


def _readable_blocks(message: Message) -> list[tuple[str, str]]:
    blocks: list[tuple[str, list[str]]] = []
    for part in message.parts:
        if isinstance(part, ToolUse):
            blocks.append((f"{message.role} uses {part.id}", [call_text(part.name, part.args)]))
        elif isinstance(part, ToolResult):
            failed = "failed " if part.failed else ""
            text = "\n".join(_readable(each) for each in part.parts)
            blocks.append((f"{part.name or 'tool'} {failed}{part.id}", [text or "(nothing)"]))
        elif blocks and blocks[-1][0] == message.role:
            blocks[-1][1].append(_readable(part))
        else:
            blocks.append((message.role, [_readable(part)]))
    return [(who, "".join(texts)) for who, texts in blocks]


def _readable(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else f"[image {part.url or part.media_type or ''}]"


def conversation_of(
    messages: list[Any], tools: list[Any], params: dict[str, Any], source: str | None
) -> Conversation:
    """Return a request in the neutral form; an unknown source is read as OpenAI's shape."""
    provider = named(source)
    conversation = Conversation()
    system = next((params[key] for key in SYSTEM if key in params), None)
    _read_system(conversation, system)
    for message in mappings(messages):
        _read_message(conversation, message)
    conversation.tools = read_tools(tools, conversation.lost)
    read_options(conversation, params, provider)
    unnamed = sum(
        isinstance(part, ToolUse | ToolResult) and not part.id
        for message in conversation.messages
        for part in message.parts
    )
    conversation.messages = with_ids(conversation.messages)
    if unnamed:
        conversation.notes.append(
            "the recording has no ids for tool uses; they were numbered call_1, call_2, …"
        )
    return conversation


def _read_system(conversation: Conversation, system: object) -> None:
    """Take in a system prompt: a text, blocks, or Gemini's content."""
    system = mapping(system).get("parts", system)
    for part in content_parts(system, conversation.lost):
        if isinstance(part, Text):
            conversation.system += [part.text] if part.text else []
        elif isinstance(part, Other):
            conversation.lost.add(part.what)


_PLAIN_FORMS = (
    None,
    "function",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
)
"""Of tool uses and results: those that are a name, arguments and a text."""


def _read_message(conversation: Conversation, message: dict[str, Any]) -> None:
    role, lost = role_of(message), conversation.lost
    if role == "system":
        conversation.add_system(plain_text(message.get("content")))
        return
    if message.get("refusal"):
        lost.add("the mark of a refusal, whose text is kept")
    parts: list[CommonPart] = []
    for part in message_parts(message, lost):
        if isinstance(part, Reasoning | Other):
            lost.add(part.what)
        elif isinstance(part, ToolUse | ToolResult) and part.form not in _PLAIN_FORMS:
            lost.add(f"an item of type {part.form}")
        elif isinstance(part, ToolResult):
            parts.append(part._replace(parts=_result_parts(part.value, lost)))
        else:
            parts.append(part)
    for key, what in (("audio", "audio"), ("annotations", "citations"), ("name", "a speaker's name")):
        if message.get(key) and "role" in message and role != "tool":
            lost.add(what)
    conversation.add("assistant" if role == "assistant" else "user", parts)


def _result_parts(value: object, lost: Losses) -> tuple[Text | Image, ...]:
    if isinstance(value, dict):
        value = [value] if "type" in value else text_of_value(result_value(value))
    found: list[Text | Image] = []
    for part in content_parts(value, lost):
        if isinstance(part, Text | Image):
            found.append(part)
        elif isinstance(part, Reasoning | Other):
            lost.add(part.what)
    return tuple(found)


def read_options(conversation: Conversation, params: dict[str, Any], provider: Provider) -> None:
    """Take in what a request says beside its messages and tools; an option without a neutral name is lost."""
    nested, within = provider.NESTED_OPTIONS
    for key, value in params.items():
        if key in provider.OPTIONS:
            conversation.options[provider.OPTIONS[key]] = value
        elif nested and key in (nested, _snake(nested)):
            _read_nested(conversation, mapping(value), within, nested)
        elif key not in _ELSEWHERE and value is not None:
            conversation.lost.add(f"the option {key}")
    choice = provider.read_tool_choice(params)
    if choice in ("auto", "any", "none") or (choice or "").startswith("tool:"):
        conversation.options["tool_choice"] = choice
    elif choice is not None or params.get("tool_choice") is not None:
        conversation.lost.add("the option tool_choice")


def _read_nested(
    conversation: Conversation, values: dict[str, Any], names: dict[str, str], where: str
) -> None:
    known = {spelling: name for key, name in names.items() for spelling in (key, _snake(key))}
    for key, value in values.items():
        if key in known:
            conversation.options[known[key]] = value
        elif value is not None:
            conversation.lost.add(f"the option {where}.{key}")


def _snake(camel: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in camel)


def write_options(conversation: Conversation, target: str) -> dict[str, Any]:
    """Return the options as the target spells them."""
    writer = _WRITERS[target]
    options = dict(conversation.options)
    choice = options.pop("tool_choice", None)
    for name in writer.URL_OPTIONS:
        options.pop(name, None)
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    spelled = {name: key for key, name in reversed(writer.OPTIONS.items())}
    written = {spelled[name]: value for name, value in options.items() if name in spelled}
    nested, names = writer.NESTED_OPTIONS
    spelled_within = {name: key for key, name in names.items()}
    within = {spelled_within[name]: value for name, value in options.items() if name in spelled_within}
    if within:
        written[nested] = within
    for name in options:
        if name not in spelled and name not in spelled_within:
            conversation.lost.add(f"the option {name}")
    return written | (writer.write_tool_choice(choice) if isinstance(choice, str) else {})


def read_tools(tools: list[Any], lost: Losses) -> list[Tool]:
    """Return the functions among tools; those the provider runs itself are lost."""
    found = []
    for tool, function in tool_declarations(tools):
        if not string(function.get("name")) or _is_hosted(tool, function):
            lost.add(f"the tool {string(tool.get('type')) or next(iter(tool), 'without a name')}")
            continue
        if tool.get("cache_control"):
            lost.add("a cache marker")
        found.append(Tool(str(function["name"]), string(function.get("description")), _schema(function)))
    return found


def _is_hosted(tool: dict[str, Any], function: dict[str, Any]) -> bool:
    """True for a tool without a schema of its own that has a type no plain function has."""
    return string(tool.get("type")) not in (None, "function", "custom") or (
        tool.get("type") == "custom" and "input_schema" not in tool and "parameters" not in function
    )


def _schema(function: dict[str, Any]) -> Any:
    for key in ("input_schema", "parametersJsonSchema", "parameters_json_schema", "parameters"):
        if isinstance(function.get(key), dict):
            return _lower_types(function[key]) if key == "parameters" else function[key]
    nested = mapping(function.get("inputSchema")).get("json")
    return nested if isinstance(nested, dict) else {"type": "object", "properties": {}}


def _lower_types(schema: Any, depth: int = 0) -> Any:
    """Return a schema with JSON Schema's own type names, which Google writes in capitals."""
    if depth > 60:
        return schema
    if isinstance(schema, list):
        return [_lower_types(item, depth + 1) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower_types(value, depth + 1)
        for key, value in schema.items()
    }
