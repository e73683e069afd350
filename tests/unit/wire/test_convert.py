"""Conversion of requests: pairs are kept, everything stands where the target wants it, losses are named."""

from __future__ import annotations

from typing import Any

import pytest

from reenact.wire.convert import as_text, convert
from reenact.wire.pairing import consistent

ARGS = {"q": "hotels"}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": ARGS}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "82 EUR", "is_error": True}
ANTHROPIC = (
    [
        {"role": "user", "content": "Plan Lisbon"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, USE]},
        {"role": "user", "content": [RESULT, {"type": "text", "text": "Go on"}]},
    ],
    [{"name": "search", "description": "Finds.", "input_schema": SCHEMA}],
    {
        "model": "claude",
        "max_tokens": 9,
        "system": "You plan.",
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any"},
    },
)
CALL = {"id": "toolu_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "hotels"}'}}
OPENAI = (
    [
        {"role": "system", "content": "You plan."},
        {"role": "user", "content": "Plan Lisbon"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "82 EUR"},
        {"role": "user", "content": "Go on"},
    ],
    [{"type": "function", "function": {"name": "search", "description": "Finds.", "parameters": SCHEMA}}],
    {"model": "claude", "max_completion_tokens": 9, "stop": ["END"], "tool_choice": "required"},
)
GEMINI = (
    [
        {"role": "user", "parts": [{"text": "Plan Lisbon"}]},
        {"role": "model", "parts": [{"text": "Let me see."}, {"functionCall": {"name": "search", "args": ARGS}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "search", "response": {"error": "82 EUR"}}}, {"text": "Go on"}]},
    ],
    [{"functionDeclarations": [{"name": "search", "description": "Finds.", "parametersJsonSchema": SCHEMA}]}],
    {"generationConfig": {"maxOutputTokens": 9, "stopSequences": ["END"]},
     "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
     "systemInstruction": {"parts": [{"text": "You plan."}]}},
)  # fmt: skip
BEDROCK = (
    [
        {"role": "user", "content": [{"text": "Plan Lisbon"}]},
        {"role": "assistant", "content": [
            {"text": "Let me see."}, {"toolUse": {"toolUseId": "toolu_1", "name": "search", "input": ARGS}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "toolu_1", "status": "error", "content": [{"text": "82 EUR"}]}},
            {"text": "Go on"}]},
    ],
    [{"toolSpec": {"name": "search", "description": "Finds.", "inputSchema": {"json": SCHEMA}}}],
    {"modelId": "claude", "system": [{"text": "You plan."}], "inferenceConfig": {"maxTokens": 9, "stopSequences": ["END"]},
     "toolConfig": {"tools": [], "toolChoice": {"any": {}}}},
)  # fmt: skip
RESPONSES = (
    [
        {"role": "user", "content": [{"type": "input_text", "text": "Plan Lisbon"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "toolu_1", "name": "search", "arguments": '{"q": "hotels"}'},
        {"type": "function_call_output", "call_id": "toolu_1", "output": "82 EUR"},
        {"role": "user", "content": "Go on"},
    ],
    [{"type": "function", "name": "search", "description": "Finds.", "parameters": SCHEMA}],
    {"model": "claude", "instructions": "You plan.", "max_output_tokens": 9, "tool_choice": "required"},
)
OLLAMA = (
    [
        {"role": "system", "content": "You plan."},
        {"role": "user", "content": "Plan Lisbon"},
        {"role": "assistant", "content": "Let me see.",
         "tool_calls": [{"function": {"name": "search", "arguments": ARGS}}]},
        {"role": "tool", "tool_name": "search", "content": "82 EUR"},
        {"role": "user", "content": "Go on"},
    ],
    OPENAI[1],
    {"model": "claude", "options": {"num_predict": 9, "stop": ["END"]}},
)  # fmt: skip
SOURCES = {
    "anthropic": ANTHROPIC, "openai": OPENAI, "openai-responses": RESPONSES, "gemini": GEMINI,
    "bedrock": BEDROCK, "ollama": OLLAMA,
}  # fmt: skip
FLAGLESS = ("openai", "openai-responses", "ollama")
"""Have no word for a tool that failed."""
IDLESS = ("gemini", "ollama")


def renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: renamed(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, old, new) for item in value]
    return new if value == old else value


@pytest.mark.parametrize("source", SOURCES)
def test_every_shape_becomes_anthropics(source: str) -> None:
    made = convert(*SOURCES[source], source, "anthropic")
    expected = renamed(ANTHROPIC[0], "toolu_1", "call_1") if source in IDLESS else ANTHROPIC[0]
    if source in FLAGLESS:
        expected = [
            expected[0], expected[1],
            {"role": "user", "content": [
                {key: value for key, value in block.items() if key != "is_error"} for block in expected[2]["content"]]},
        ]  # fmt: skip
    assert made.messages == expected
    assert made.tools == ANTHROPIC[1]
    assert made.params["system"] == "You plan." and made.params["max_tokens"] == 9
    assert any("numbered" in note for note in made.notes) == (source in IDLESS)


@pytest.mark.parametrize("source", SOURCES)
def test_every_shape_becomes_openais(source: str) -> None:
    made = convert(*SOURCES[source], source, "openai")
    expected = renamed(OPENAI[0], "toolu_1", "call_1") if source in IDLESS else OPENAI[0]
    assert (made.messages, made.tools) == (expected, OPENAI[1])
    assert any("a tool failed" in lost for lost in made.lost) == (source not in FLAGLESS)
    assert made.params["max_completion_tokens"] == 9


@pytest.mark.parametrize("source", SOURCES)
def test_every_shape_becomes_geminis(source: str) -> None:
    made = convert(*SOURCES[source], source, "gemini")
    expected = GEMINI[0] if source not in FLAGLESS else renamed_result(GEMINI[0])
    assert (made.messages, made.tools) == (expected, GEMINI[1])
    assert made.params["systemInstruction"] == GEMINI[2]["systemInstruction"]
    assert made.params["generationConfig"]["maxOutputTokens"] == 9
    assert any("ids of tool uses" in lost for lost in made.lost)


def renamed_result(contents: list[Any]) -> list[Any]:
    result = {"functionResponse": {"name": "search", "response": {"result": "82 EUR"}}}
    return [*contents[:2], {"role": "user", "parts": [result, {"text": "Go on"}]}]


def test_options_find_their_words() -> None:
    assert convert(*ANTHROPIC, "anthropic", "openai").params == OPENAI[2]
    assert convert(*ANTHROPIC, "anthropic", "gemini").params == GEMINI[2]
    back = convert(*OPENAI, "openai", "anthropic").params
    assert back == ANTHROPIC[2]
    assert convert(*BEDROCK, "bedrock", "anthropic").params == ANTHROPIC[2]
    one = {
        "model": "m",
        "tool_choice": {"type": "function", "function": {"name": "search"}},
        "logprobs": True,
    }
    made = convert(OPENAI[0], OPENAI[1], one, "openai", "anthropic")
    assert made.params["tool_choice"] == {"type": "tool", "name": "search"}
    assert "the option logprobs" in made.lost
    assert any("max_tokens" in note for note in made.notes)
    top_k = convert([], [], {"max_tokens": 1, "top_k": 5}, "anthropic", "openai")
    assert "the option top_k" in top_k.lost


def test_results_of_one_turn_stand_in_one_message_and_in_order() -> None:
    calls = [{**CALL, "id": name} for name in ("a", "b")]
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "of b"},
        {"role": "tool", "tool_call_id": "a", "content": "of a"},
    ]
    anthropic = convert(messages, [], {}, "openai", "anthropic").messages
    assert [message["role"] for message in anthropic] == ["user", "assistant", "user"]
    assert [block["tool_use_id"] for block in anthropic[2]["content"]] == ["b", "a"]
    gemini = convert(messages, [], {}, "openai", "gemini").messages
    texts = [part["functionResponse"]["response"]["result"] for part in gemini[2]["parts"]]
    assert texts == ["of a", "of b"], "there only the order tells which is which"


def test_what_has_no_counterpart_is_named() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {
            "type": "text",
            "text": "See",
            "citations": [{"type": "char_location"}],
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "document", "source": {}},
    ]
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    params = {"max_tokens": 1, "thinking": {"type": "enabled"}, "metadata": {"user_id": "u"}}
    made = convert([{"role": "assistant", "content": content}], tools, params, "anthropic", "openai")
    assert made.messages == [{"role": "assistant", "content": "See"}] and made.tools == []
    assert made.lost == [
        "a thinking block with its signature (2 times)", "a cache marker", "citations",
        "a block of a tool the provider ran (server_tool_use)",
        "a block of a tool the provider ran (web_search_tool_result)", "a block of type document",
        "the tool web_search_20250305", "the option thinking", "the option metadata",
    ]  # fmt: skip


def test_losses_of_the_other_shapes() -> None:
    openai = [
        {"role": "user", "name": "ann", "content": [{"type": "input_audio", "input_audio": {}}]},
        {"role": "assistant", "content": None, "refusal": "I will not.", "reasoning_content": "hm"},
        {"role": "system", "content": "Later rule"},
    ]
    made = convert(openai, [], {}, "openai", "anthropic")
    assert made.messages == [{"role": "assistant", "content": "I will not."}]
    assert made.params == {"system": "Later rule"}
    assert made.lost == [
        "a part of type input_audio", "a speaker's name", "the mark of a refusal, whose text is kept", "reasoning",
        "the place of a system message in the middle, whose text is kept",
    ]  # fmt: skip
    assert any("begins with the model's words" in note for note in made.notes)
    gemini = [
        {
            "role": "model",
            "parts": [{"text": "hm", "thought": True}, {"text": "Yes", "thoughtSignature": "s"}],
        }
    ]
    assert convert(gemini, [], {}, "gemini", "openai").lost == [
        "a thinking block with its signature",
        "a thought signature",
    ]
    items = [{"type": "reasoning", "summary": []}, {"type": "web_search_call", "id": "w"}]
    assert convert(items, [], {}, "openai-responses", "anthropic").lost == [
        "reasoning",
        "an item of type web_search_call",
    ]


def test_images_travel_where_they_can() -> None:
    png = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "What?"}, png]}]
    openai = convert(messages, [], {}, "anthropic", "openai")
    assert openai.messages[0]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,iVBO"},
    }
    assert convert(openai.messages, [], {}, "openai", "anthropic").messages == messages
    gemini = convert(messages, [], {}, "anthropic", "gemini")
    assert gemini.messages[0]["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
    assert convert(gemini.messages, [], {}, "gemini", "anthropic").messages == messages
    far = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}]
    assert (
        convert(far, [], {}, "openai", "anthropic").messages[0]["content"][0]["source"]["url"]
        == "https://x.test/a.png"
    )
    assert convert(far, [], {}, "openai", "gemini").lost == ["an image at a URL"]
    ollama = [{"role": "user", "content": "What?", "images": ["/9j/4AAQ"]}]
    assert (
        convert(ollama, [], {}, "ollama", "anthropic").messages[0]["content"][1]["source"]["media_type"]
        == "image/jpeg"
    )
    bedrock = [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}]}]
    assert (
        convert(bedrock, [], {}, "bedrock", "openai")
        .messages[0]["content"][0]["image_url"]["url"]
        .startswith("data:image/png")
    )
    inside = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}, png]}]
    kept = convert([{"role": "user", "content": inside}], [], {}, "anthropic", "openai")
    assert kept.lost == ["an image in a tool's result"] and kept.messages[0]["content"] == "x"


def test_arguments_that_are_no_object_are_kept_and_reported() -> None:
    bad = {"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"q": '}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [bad]}]
    made = convert(messages, [], {}, "openai", "anthropic")
    assert made.messages[0]["content"][0]["input"] == {"input": '{"q": '}
    assert made.lost == ["arguments that are no JSON object, now under the key input"]
    custom = [{"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls -l"}]
    there = convert(custom, [], {}, "openai-responses", "openai").messages
    assert there[0]["tool_calls"][0]["function"]["arguments"] == "ls -l"


def test_ids_that_anthropic_would_refuse_are_replaced_on_both_sides() -> None:
    call = {**CALL, "id": "call:1/ü"}
    messages = [
        {"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call:1/ü", "content": "x"},
    ]  # fmt: skip
    made = convert(messages, [], {}, "openai", "anthropic")
    assert made.messages[1]["content"][0]["id"] == made.messages[2]["content"][0]["tool_use_id"] == "use_1"
    assert any("refuse" in note for note in made.notes)


def test_schemas_of_google_lose_their_capitals() -> None:
    schema = {"type": "OBJECT", "properties": {"type": {"type": "STRING", "enum": ["A"]}}}
    tools = [{"function_declarations": [{"name": "t", "parameters": schema}]}, {"googleSearch": {}}]
    made = convert([], tools, {}, "gemini", "anthropic")
    assert made.tools[0]["input_schema"] == {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": ["A"]}},
    }
    assert made.lost == ["the tool googleSearch"]


def test_a_text_to_be_read() -> None:
    assert as_text(*ANTHROPIC, "anthropic").splitlines() == [
        "system:", "You plan.", "", "user:", "Plan Lisbon", "", "assistant:", "Let me see.", "",
        "assistant uses toolu_1:", 'search({"q": "hotels"})', "", "search failed toolu_1:", "82 EUR", "",
        "user:", "Go on",
    ]  # fmt: skip
    assert as_text([], [], {}, None) == ""


@pytest.mark.parametrize(
    ("params", "source"),
    [
        ({"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}}, "gemini"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "openai"),
        ({"tool_choice": "auto"}, "ollama"),
    ],
)
def test_a_choice_of_tools_that_others_do_not_have_is_named_and_not_sent(
    params: dict[str, Any], source: str
) -> None:
    made = convert([], [], params, source, "anthropic")
    assert made.params == {} and "the option tool_choice" in made.lost


def test_ten_thousand_results_in_the_wrong_order_find_their_uses() -> None:
    ids = [f"u{number}" for number in range(10_000)]
    uses = [{"type": "tool_use", "id": each, "name": each, "input": {}} for each in ids]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "ok"} for each in reversed(ids)]
    messages = [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    assert consistent(messages, "anthropic") == (2, [], [])
    made = convert(messages, [], {}, "anthropic", "gemini")
    assert [part["functionResponse"]["name"] for part in made.messages[1]["parts"]] == ids
