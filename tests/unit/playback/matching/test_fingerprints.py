"""What two requests may differ in and still be the same one, and what they may not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.playback.matching.request import HTTP, MODEL, Fingerprint, Request, tools_of

ANTHROPIC = "https://api.anthropic.com/v1/messages"
OPENAI = "https://api.openai.com/v1/chat/completions"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"


def fingerprint(
    kind: str, method: str, url: str, body: Any, sent: dict[str, Any] | None = None
) -> Fingerprint:
    return Request(kind, method, body, url=url, sent=sent).fingerprint


def fingerprint_of(url: str = ANTHROPIC, method: str = "POST", **body: Any) -> Any:
    return fingerprint(MODEL, method, url, body)


def talk(first: str = "toolu_1", second: str = "toolu_2") -> list[Any]:
    return [
        {"role": "user", "content": "Plan Lisbon"},
        {"role": "assistant", "id": f"msg_{first}", "content": [
            {"type": "tool_use", "id": first, "name": "search", "input": {"id": "guest-7", "q": None}},
            {"type": "tool_use", "id": second, "name": "book", "input": {"n": 1.0}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": first, "content": "Hotel"},
            {"type": "tool_result", "tool_use_id": second, "content": "booked"},
        ]},
    ]  # fmt: skip


BASE: dict[str, Any] = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 64,
    "system": "You plan.",
    "messages": talk(),
}


def changed(**more: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BASE), **more}


SAME = {
    "other ids": changed(messages=talk("toolu_A", "toolu_B")),
    "keys in another order": dict(reversed(list(BASE.items()))),
    "null is absent": changed(stop_sequences=None, temperature=None),
    "a default is absent": changed(temperature=1.0, top_p=1, stream=False),
    "cache marks": changed(
        system=[{"type": "text", "text": "You plan.", "cache_control": {"type": "ephemeral"}}]
    ),
    "who pays": changed(metadata={"user_id": "u-1"}),
    "idempotency": changed(idempotency_key="k-77", request_id="r-1"),
    "a text or one text part": changed(
        messages=[{"role": "user", "content": [{"type": "text", "text": "Plan Lisbon"}]}, *talk()[1:]]
    ),
}
OTHER = {
    "prompt": changed(system="You plan trips."),
    "model": changed(model="claude-opus-4-6"),
    "limit": changed(max_tokens=65),
    "a stream": changed(stream=True),
    "results swapped": changed(messages=[*talk()[:2], {**talk()[2], "content": talk()[2]["content"][::-1]}]),
    "results paired otherwise": changed(messages=[*talk()[:2], *talk("toolu_2", "toolu_1")[2:]]),
    "an id that a tool is given": changed(
        messages=[talk()[0], {"role": "assistant", "id": "m", "content": [
            {"type": "tool_use", "id": "a", "name": "search", "input": {"id": "guest-8", "q": None}},
            {"type": "tool_use", "id": "b", "name": "book", "input": {"n": 1.0}}]}, *talk("a", "b")[2:]]
    ),
    "null that a tool is given": changed(
        messages=[talk()[0], {"role": "assistant", "id": "m", "content": [
            {"type": "tool_use", "id": "a", "name": "search", "input": {"id": "guest-7"}},
            {"type": "tool_use", "id": "b", "name": "book", "input": {"n": 1.0}}]}, *talk("a", "b")[2:]]
    ),
    "a message more": changed(messages=[*talk(), {"role": "user", "content": "?"}]),
    "metadata of one's own": changed(metadata={"user_id": "u-1", "task": "t"}),
    "a tool": changed(tools=[{"name": "search", "input_schema": {"type": "object"}}]),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_makes_no_difference(name: str) -> None:
    assert fingerprint_of(**SAME[name]).l1 == fingerprint_of(**BASE).l1
    assert name == "keys in another order" or fingerprint_of(**SAME[name]).l0 != fingerprint_of(**BASE).l0


@pytest.mark.parametrize("name", OTHER)
def test_what_makes_a_difference(name: str) -> None:
    assert fingerprint_of(**OTHER[name]).l1 != fingerprint_of(**BASE).l1


def test_a_stream_is_never_a_plain_call_but_has_the_same_content() -> None:
    plain, stream = (
        fingerprint_of(**BASE),
        fingerprint_of(**changed(stream=True, stream_options={"include_usage": True})),
    )
    assert plain.content == stream.content
    assert plain.l1 != stream.l1
    assert (plain.is_stream, stream.is_stream) == (False, True)


@pytest.mark.parametrize(
    ("url", "body", "streams"),
    [
        (GEMINI, {"contents": []}, False),
        (GEMINI.replace(":generate", ":streamGenerate") + "?alt=sse", {"contents": []}, True),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream", {}, True),
        ("http://localhost:11434/api/chat", {"messages": []}, True),
        ("http://localhost:11434/api/chat", {"messages": [], "stream": False}, False),
    ],
)
def test_who_asks_for_a_stream(url: str, body: Any, streams: bool) -> None:
    assert fingerprint(MODEL, "POST", url, body).is_stream is streams


def test_the_host_is_not_counted_the_path_and_a_model_in_it_are() -> None:
    at = fingerprint_of(**BASE).l1
    assert fingerprint_of("http://127.0.0.1:9000/v1/messages", **BASE).l1 == at
    assert fingerprint_of(ANTHROPIC + "/", **BASE).l1 == at
    assert fingerprint_of(ANTHROPIC.replace("v1", "v2"), **BASE).l1 != at
    assert (
        fingerprint_of(GEMINI + "?key=one", contents=[]).l1
        == fingerprint_of(GEMINI + "?key=two", contents=[]).l1
    )
    assert (
        fingerprint_of(GEMINI, contents=[]).l1
        != fingerprint_of(GEMINI.replace("pro", "flash"), contents=[]).l1
    )
    assert (
        fingerprint_of(GEMINI, contents=[]).site
        == fingerprint_of(GEMINI.replace("pro", "flash"), contents=[]).site
    )


def test_arguments_in_a_text_are_compared_as_json() -> None:
    def call(arguments: str) -> Any:
        use = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return fingerprint_of(OPENAI, model="m", messages=[{"role": "assistant", "tool_calls": [use]}])

    assert call('{"a": 1, "b": 2}').l1 == call('{"b":2,"a":1}').l1
    assert call('{"a": 1}').l1 != call('{"a": 2}').l1
    assert call("not json").l1 != call("not  json").l1


def test_secrets_are_matched_by_kind_and_by_which_is_which() -> None:
    def with_texts(*texts: str) -> str:
        return fingerprint_of(model="m", messages=[{"role": "user", "content": text} for text in texts]).l1

    one, two, other = "k <redacted:key:1>", "k <redacted:key:2>", "k <redacted:email:1>"
    assert (
        with_texts(one, two) == with_texts(two, one) == with_texts("k <redacted:key:7>", "k <redacted:key:9>")
    )
    assert with_texts(one, one) != with_texts(one, two)
    assert with_texts(one) != with_texts(other)


def test_a_form_is_the_same_whatever_its_boundary() -> None:
    def form(size: int, value: str = "batch") -> str:
        sent = {"type": "multipart/form-data", "bytes": size, "parts": [{"name": "purpose", "value": value}]}
        return fingerprint("files", "POST", "https://api.openai.com/v1/files", None, sent=sent).l1

    assert form(400) == form(404)
    assert form(400) != form(400, "assistants")


def test_tools_are_matched_by_name_and_all_of_their_arguments() -> None:
    def called(name: str, args: Any) -> str:
        return Request.tool(name, args).fingerprint.l1

    assert called("search", {"a": 1, "b": 2}) == called("search", {"b": 2, "a": 1})
    assert called("search", {"a": 1}) != called("find", {"a": 1})
    assert called("search", {"a": None}) != called("search", {})
    assert called("search", {"a": 1}) != called("search", {"a": 1.5})
    assert called("search", {"id": "x"}) != called("search", {"id": "y"})


def test_other_http_is_matched_by_its_whole_body() -> None:
    url = "https://api.openai.com/v1/embeddings"
    assert fingerprint("embeddings", "POST", url, {"input": "a", "x": None}).kind == HTTP
    assert (
        fingerprint("embeddings", "POST", url, {"input": "a"}).l1
        != fingerprint("embeddings", "POST", url, {"input": "b"}).l1
    )
    assert fingerprint("http", "GET", url, None).l1 != fingerprint("http", "POST", url, None).l1


def test_the_roles_and_the_tools_of_a_request() -> None:
    body = changed(tools=[{"name": "search"}, {"type": "function", "function": {"name": "book"}}])
    assert Request(MODEL, "POST", body).roles == ("user", "assistant", "user")
    assert tools_of(body) == ("book", "search")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_any_body_has_a_fingerprint_and_its_copy_the_same(value: Any) -> None:
    for kind in (MODEL, "http"):
        assert fingerprint(kind, "POST", ANTHROPIC, value) == fingerprint(
            kind, "POST", ANTHROPIC, copy.deepcopy(value)
        )
    assert Request.tool("t", value).fingerprint == Request.tool("t", copy.deepcopy(value)).fingerprint
    Request(MODEL, "POST", {"messages": [value], "x": value}, url=ANTHROPIC).plain()


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.integers(0, 4), st.text(min_size=1))
def test_any_edit_of_any_message_is_seen(texts: list[str], at: int, added: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    edited = copy.deepcopy(messages)
    edited[at % len(edited)]["content"] += added
    assert fingerprint_of(messages=messages).l1 != fingerprint_of(messages=edited).l1


def test_odd_values_do_not_raise() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in ({1: "a", "b": 2}, circle, {"f": object}, b"bytes", {"s": {3, 1, 2}}, float("nan")):
        assert Request.tool("t", value).fingerprint.l1


@pytest.mark.parametrize(
    "more",
    [
        {"prompt": {"id": "pmpt_1", "version": "2"}},
        {"documents": [{"id": "d1", "data": {"id": "guest-7", "text": "Hotel"}}]},
    ],
)
def test_an_id_that_the_user_chose_is_a_part_of_the_request(more: dict[str, Any]) -> None:
    other = copy.deepcopy(more)
    inner = other.get("prompt") or other["documents"][0]["data"]
    inner["id"] += "0"
    assert fingerprint_of(OPENAI, **BASE, **more).l1 != fingerprint_of(OPENAI, **BASE, **other).l1
