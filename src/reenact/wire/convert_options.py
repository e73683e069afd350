"""Tools and options of a request in every provider's words <-> neutral ones. Total.

An option that another provider has no word for is counted as lost by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gemini import _get as get
from .neutral import Conversation, Losses, Tool
from .values import mapping, mappings, string

_FLAT = {
    "anthropic": {
        "model": "model", "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p",
        "top_k": "top_k", "stop_sequences": "stop", "stream": "stream",
    },
    "openai": {
        "model": "model", "max_completion_tokens": "max_tokens", "max_tokens": "max_tokens",
        "temperature": "temperature", "top_p": "top_p", "stop": "stop", "stream": "stream",
    },
    "openai-responses": {
        "model": "model", "max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p",
        "stream": "stream",
    },
    "gemini": {"model": "model"},
    "bedrock": {"modelId": "model"},
    "ollama": {"model": "model", "stream": "stream"},
}  # fmt: skip
_NESTED = {
    "gemini": ("generationConfig", {
        "maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "topK": "top_k",
        "stopSequences": "stop",
    }),
    "bedrock": ("inferenceConfig", {
        "maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop",
    }),
    "ollama": ("options", {
        "num_predict": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k",
        "stop": "stop",
    }),
}  # fmt: skip
_ELSEWHERE = frozenset({"system", "instructions", "systemInstruction", "system_instruction", "tool_choice",
                        "toolConfig", "tool_config"})  # fmt: skip
"""Read with the messages or by a function of its own."""


def read_options(conversation: Conversation, params: dict[str, Any], provider: str) -> None:
    """Take in what a request says beside its messages and tools."""
    flat = _FLAT.get(provider, {})
    nested, inner = _NESTED.get(provider, ("", {}))
    for key, value in params.items():
        if key in flat:
            conversation.options[flat[key]] = value
        elif nested and key in (nested, _snake(nested)):
            _read_nested(conversation, mapping(value), inner, nested)
        elif key not in _ELSEWHERE and value is not None:
            conversation.lost.add(f"the option {key}")
    choice = _CHOICES.get(provider, _no_choice)(params)
    if choice in ("auto", "any", "none") or (choice or "").startswith("tool:"):
        conversation.options["tool_choice"] = choice
    elif choice is not None or params.get("tool_choice") is not None:
        conversation.lost.add("the option tool_choice")


def _read_nested(
    conversation: Conversation, values: dict[str, Any], inner: dict[str, str], where: str
) -> None:
    known = {spelling: name for key, name in inner.items() for spelling in (key, _snake(key))}
    for key, value in values.items():
        if key in known:
            conversation.options[known[key]] = value
        elif value is not None:
            conversation.lost.add(f"the option {where}.{key}")


def _snake(camel: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in camel)


def _no_choice(params: dict[str, Any]) -> str | None:
    return None


def _anthropic_choice(params: dict[str, Any]) -> str | None:
    choice = mapping(params.get("tool_choice"))
    kind = string(choice.get("type"))
    return f"tool:{choice.get('name')}" if kind == "tool" else kind


def _openai_choice(params: dict[str, Any]) -> str | None:
    choice = params.get("tool_choice")
    if isinstance(choice, str):
        return "any" if choice == "required" else choice
    named = string(mapping(mapping(choice).get("function")).get("name")) or string(
        mapping(choice).get("name")
    )
    return f"tool:{named}" if named else None


def _gemini_choice(params: dict[str, Any]) -> str | None:
    config = mapping(get(mapping(get(params, "toolConfig")), "functionCallingConfig"))
    names = get(config, "allowedFunctionNames")
    if isinstance(names, list) and len(names) == 1:
        return f"tool:{names[0]}"
    mode = string(config.get("mode"))
    return mode.lower() if mode else None


def _bedrock_choice(params: dict[str, Any]) -> str | None:
    choice = mapping(mapping(params.get("toolConfig")).get("toolChoice"))
    kind = next(iter(choice), None)
    return f"tool:{mapping(choice[kind]).get('name')}" if kind == "tool" else kind


_CHOICES: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "anthropic": _anthropic_choice,
    "openai": _openai_choice,
    "openai-responses": _openai_choice,
    "gemini": _gemini_choice,
    "bedrock": _bedrock_choice,
}
"""How each says whether tools must be used: neutral ``auto any none tool:NAME``."""


def read_tools(tools: list[Any], lost: Losses) -> list[Tool]:
    """Return the functions among tools; those the provider runs itself are lost."""
    found = []
    for tool in mappings(tools):
        functions = get(tool, "functionDeclarations")
        several = mappings(functions) if isinstance(functions, list) else [_function(tool)]
        for function in several:
            if not string(function.get("name")) or _is_hosted(tool, function):
                lost.add(f"the tool {string(tool.get('type')) or next(iter(tool), 'without a name')}")
                continue
            if tool.get("cache_control"):
                lost.add("a cache marker")
            found.append(Tool(str(function["name"]), string(function.get("description")), _schema(function)))
    return found


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    for key in ("function", "toolSpec"):
        if isinstance(tool.get(key), dict):
            return mapping(tool[key])
    return tool


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


def write_tools(tools: list[Tool], target: str) -> list[dict[str, Any]]:
    """Return the tools as the target declares them."""
    if target == "gemini":
        functions = [_described(tool, "parametersJsonSchema") for tool in tools]
        return [{"functionDeclarations": functions}] if functions else []
    if target == "anthropic":
        return [_described(tool, "input_schema") for tool in tools]
    return [{"type": "function", "function": _described(tool, "parameters")} for tool in tools]


def _described(tool: Tool, schema: str) -> dict[str, Any]:
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, schema: tool.schema}


def write_options(conversation: Conversation, target: str) -> dict[str, Any]:
    """Return the options as the target spells them."""
    options = dict(conversation.options)
    choice = options.pop("tool_choice", None)
    if target == "gemini":  # where both stand in the URL
        options.pop("model", None)
        options.pop("stream", None)
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    spelled = {name: key for key, name in reversed(_FLAT[target].items())}
    written = {spelled[name]: value for name, value in options.items() if name in spelled}
    nested, inner = _NESTED.get(target, ("", {}))
    spelled_inner = {name: key for key, name in inner.items()}
    within = {spelled_inner[name]: value for name, value in options.items() if name in spelled_inner}
    if within:
        written[nested] = within
    for name in options:
        if name not in spelled and name not in spelled_inner:
            conversation.lost.add(f"the option {name}")
    return written | (_write_choice(choice, target) if isinstance(choice, str) else {})


def _write_choice(choice: str, target: str) -> dict[str, Any]:
    kind, _, name = choice.partition(":")
    if target == "gemini":
        mode = {"mode": "ANY" if kind in ("any", "tool") else kind.upper()}
        config = {**mode, "allowedFunctionNames": [name]} if kind == "tool" else mode
        return {"toolConfig": {"functionCallingConfig": config}}
    if target == "anthropic":
        return {"tool_choice": {"type": kind, "name": name} if kind == "tool" else {"type": kind}}
    named = {"type": "function", "function": {"name": name}}
    return {"tool_choice": named if kind == "tool" else "required" if kind == "any" else kind}
