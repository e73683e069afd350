"""Every dialect's stream gives the answer it has without streaming, also in the ways real servers differ."""

from __future__ import annotations

import json

import pytest

from reenact.wire import reading
from reenact.wire.streams import assemble, spoken
from support.streams import (
    ANTHROPIC_BODY,
    ANTHROPIC_EVENTS,
    BEDROCK_EVENTS,
    CHAT_USAGE,
    GEMINI_EVENTS,
    OLLAMA_END,
    RESPONSE,
    RESPONSES_BODY,
    RESPONSES_EVENTS,
    RESPONSES_OUTPUT,
    STREAMS,
    block_delta,
    call,
    call_piece,
    chat_chunk,
    chunk_frames,
    exception,
    frames,
    gemini_piece,
    ndjson,
    ollama_line,
    response_event,
    sse,
)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("reported", [True, False], ids=["by name", "by shape"])
def test_a_whole_stream_is_the_plain_answer(name, reported):
    stream = STREAMS[name]
    found = assemble(stream.data, stream.provider if reported else None)
    assert found.body == stream.body
    assert found.complete
    assert (found.error, found.aborted, found.problems) == (None, [], [])


@pytest.mark.parametrize("name", sorted(set(STREAMS) - {"cohere"}))
def test_shapes_read_what_was_assembled(name):
    body = assemble(STREAMS[name].data, STREAMS[name].provider).body
    assert reading.stop_reason(body) == "tool_use"
    _, tool, args, _ = reading.tool_uses(body)[0]
    assert (tool, args["q"][0]) == ("search", "a")
    assert {"input", "output"} <= set(reading.usage(body))
    assert reading.text(body).startswith("Grüße")


def chat(*deltas, usage=CHAT_USAGE, finish="stop", provider="openai"):
    """Assemble a chat stream of these deltas, and return the one message."""
    events = [chat_chunk(delta) for delta in deltas] + [chat_chunk({}, finish, usage=usage)]
    found = assemble(sse(*events, done=True), provider)
    assert found.complete and found.problems == []
    return found.body["choices"][0]["message"]


class TestAnthropic:
    def test_a_second_message_start_begins_anew_and_the_broken_half_is_kept(self):
        second = {"type": "message_start", "message": {**ANTHROPIC_EVENTS[0]["message"], "id": "msg_2"}}
        found = assemble(sse(*ANTHROPIC_EVENTS[:15], second, *ANTHROPIC_EVENTS[1:]), "anthropic")
        assert found.body == {**ANTHROPIC_BODY, "id": "msg_2"}
        [half] = found.aborted
        assert half["id"] == "msg_1"
        assert half["content"][1]["text"] == "Grüße, world 🌍"
        assert half["content"][2]["input"] == '{"q":"a'  # as far as it came

    def test_a_repeated_message_start_with_nothing_between_is_no_half(self):
        found = assemble(sse(ANTHROPIC_EVENTS[0], *ANTHROPIC_EVENTS), "anthropic")
        assert found.body == ANTHROPIC_BODY
        assert found.aborted == []

    def test_a_stream_that_begins_anew_after_its_end_is_not_complete_until_the_new_end(self):
        assert not assemble(sse(*ANTHROPIC_EVENTS, *ANTHROPIC_EVENTS[:9]), "anthropic").complete

    def test_usage_of_the_last_delta_replaces_and_what_it_leaves_out_stays(self):
        last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 61}}
        usage = assemble(sse(ANTHROPIC_EVENTS[0], last), "anthropic").body["usage"]
        assert usage == {"input_tokens": 61, "cache_read_input_tokens": 7, "output_tokens": 1}

    def test_a_fallback_names_the_model_that_served(self):
        block = {"type": "fallback", "from": {"model": "claude-x"}, "to": {"model": "claude-y"}}
        start = {"type": "content_block_start", "index": 0, "content_block": block}
        found = assemble(sse(ANTHROPIC_EVENTS[0], start), "anthropic")
        assert found.body["model"] == "claude-y"
        assert found.body["content"] == [block]

    def test_an_error_after_some_text_leaves_the_text(self):
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        found = assemble(sse(*ANTHROPIC_EVENTS[:9], error), "anthropic")
        assert found.error == ("overloaded_error", "Overloaded")
        assert not found.complete
        assert found.body["content"][1]["text"] == "Grüße, "

    def test_an_error_alone_is_the_body_as_it_is_without_streaming(self):
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        found = assemble(sse(error, named=True), "anthropic")
        assert found.body == error
        assert reading.error_of(found.body) == found.error == ("overloaded_error", "Overloaded")

    def test_a_delta_without_its_beginning_is_kept_and_reported(self):
        found = assemble(sse(ANTHROPIC_EVENTS[0], *ANTHROPIC_EVENTS[8:10]), "anthropic")
        assert found.body["content"] == [{"type": "text", "text": "Grüße, world 🌍"}]
        assert found.problems == ["text_delta for block 1, which never began"]

    def test_extras_beside_the_last_delta_belong_to_the_message(self):
        last = {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "container": {"id": "c"}},
            "usage": {},
            "context_management": {"applied_edits": []},
        }
        body = assemble(sse(ANTHROPIC_EVENTS[0], last), "anthropic").body
        assert (body["container"], body["context_management"]) == ({"id": "c"}, {"applied_edits": []})

    def test_first_content_is_the_end_of_the_first_thought(self):
        found = assemble(STREAMS["anthropic"].data, "anthropic")
        before = STREAMS["anthropic"].data[: found.first_content]
        assert before.endswith(b'"thinking":"Hm"}}\n\n')


class TestChatToolCalls:
    """Calls told apart by whatever the server gives."""

    A, B = call("a", "search", '{"q":1}'), call("b", "now", "{}")

    def test_index_always_zero_with_a_new_id(self):
        message = chat(
            {"tool_calls": [call_piece(0, "a", "search", '{"q":1}')]},
            {"tool_calls": [call_piece(0, "b", "now", "{}")]},
        )
        assert message["tool_calls"] == [self.A, self.B]

    def test_no_index_but_ids(self):
        message = chat(
            {"tool_calls": [call_piece(None, "a", "search", '{"q":')]},
            {"tool_calls": [call_piece(None, None, None, "1}")]},
            {"tool_calls": [call_piece(None, "b", "now", "{}")]},
        )
        assert message["tool_calls"] == [self.A, self.B]

    def test_no_index_and_pieces_that_repeat_their_id_in_turns(self):
        message = chat(
            {"tool_calls": [call_piece(None, "a", "search", '{"q":'), call_piece(None, "b", "now", "{")]},
            {"tool_calls": [call_piece(None, "a", None, "1}"), call_piece(None, "b", None, "}")]},
        )
        assert message["tool_calls"] == [self.A, self.B]

    def test_id_and_name_on_every_piece(self):
        message = chat(
            {"tool_calls": [call_piece(0, "a", "search", '{"q":')]},
            {"tool_calls": [call_piece(0, "a", "search", "1}")]},
        )
        assert message["tool_calls"] == [self.A]

    @pytest.mark.parametrize("index", [0, None])
    def test_neither_id_nor_index_but_names(self, index):
        message = chat(
            {"tool_calls": [call_piece(index, None, "search", '{"q":1}')]},
            {"tool_calls": [call_piece(index, None, "search", '{"q":2}')]},
            {"tool_calls": [call_piece(index, None, "now", "")]},
            {"tool_calls": [call_piece(index, None, "later", "")]},
        )
        assert message["tool_calls"] == [
            call(None, "search", '{"q":1}'),
            call(None, "search", '{"q":2}'),
            call(None, "now", ""),
            call(None, "later", ""),
        ]

    def test_several_whole_calls_in_one_piece(self):
        message = chat(
            {"tool_calls": [call_piece(None, "a", "search", '{"q":1}'), call_piece(None, "b", "now", "{}")]}
        )
        assert message["tool_calls"] == [self.A, self.B]

    def test_an_index_that_does_not_begin_at_zero(self):
        message = chat(
            {"tool_calls": [call_piece(1, "a", "search", "")]},
            {"tool_calls": [call_piece(1, None, None, '{"q":1}')]},
        )
        assert message["tool_calls"] == [self.A]

    def test_arguments_that_are_null_or_an_object(self):
        message = chat(
            {"tool_calls": [call_piece(0, "b", "now", None)]},
            {"tool_calls": [call_piece(1, "c", "at", {"q": 1})]},
        )
        assert message["tool_calls"] == [call("b", "now", ""), call("c", "at", '{"q": 1}')]

    def test_a_custom_tool_has_free_text(self):
        first = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": ""}}
        message = chat(
            {"tool_calls": [first]}, {"tool_calls": [{"index": 0, "custom": {"input": "SELECT 1"}}]}
        )
        assert message["tool_calls"] == [
            {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
        ]

    def test_the_old_function_call(self):
        message = chat(
            {"function_call": {"name": "search", "arguments": ""}},
            {"function_call": {"arguments": '{"q":1}'}},
        )
        assert message["function_call"] == {"name": "search", "arguments": '{"q":1}'}


class TestChat:
    def test_several_choices_interleaved(self):
        chunks = [
            {"id": "x", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}
            for index, text, finish in [(1, "b", None), (0, "a", None), (1, "B", "length"), (0, "A", "stop")]
        ]
        choices = assemble(sse(*chunks, done=True), None).body["choices"]
        assert [(c["index"], c["message"]["content"], c["finish_reason"]) for c in choices] == [
            (0, "aA", "stop"),
            (1, "bB", "length"),
        ]

    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "refusal"])
    def test_texts_beside_the_content(self, key):
        message = chat(
            {"role": "assistant", "content": None, key: "Hm"}, {key: ", 2."}, {"content": "4", key: None}
        )
        assert message == {"role": "assistant", "content": "4", key: "Hm, 2."}

    def test_reasoning_details_are_merged_by_index_and_type(self):
        detail = {"type": "reasoning.text", "format": "f", "index": 0}
        message = chat(
            {"reasoning_details": [{**detail, "text": "Hm"}]},
            {"reasoning_details": [{**detail, "text": ", 2."}]},
            {"reasoning_details": [{**detail, "signature": "c2ln"}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}]},
        )
        assert message["reasoning_details"] == [
            {**detail, "text": "Hm, 2.", "signature": "c2ln"},
            {"type": "reasoning.encrypted", "data": "x", "index": 1},
        ]

    def test_mistral_sends_parts_once_it_thinks(self):
        def thought(text):
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}

        message = chat(
            thought("Hm"), thought(", 2."), {"content": "It is "}, {"content": "4"}, provider="mistral"
        )
        assert message["content"] == [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, 2."}]},
            {"type": "text", "text": "It is 4"},
        ]

    def test_text_before_the_first_part_stays_in_front(self):
        message = chat({"content": "So: "}, {"content": "it"}, {"content": [{"type": "text", "text": " is"}]})
        assert message["content"] == [{"type": "text", "text": "So: it is"}]

    def test_usage_on_every_chunk_is_taken_from_the_last(self):
        chunks = [
            chat_chunk({"content": text}, usage={"prompt_tokens": 9, "completion_tokens": number})
            for number, text in enumerate("abc")
        ]
        assert assemble(sse(*chunks), None).body["usage"] == {"prompt_tokens": 9, "completion_tokens": 2}

    def test_usage_that_is_never_reported_is_absent(self):
        body = assemble(sse(chat_chunk({"content": "a"}, usage=None), done=True), None).body
        assert "usage" not in body

    def test_groq_and_moonshot_put_usage_elsewhere(self):
        groq = [
            chat_chunk({"content": "a"}, x_groq={"id": "r"}),
            chat_chunk({}, "stop", x_groq={"usage": CHAT_USAGE}),
        ]
        body = assemble(sse(*groq), "openai").body
        assert body["x_groq"] == {"id": "r", "usage": CHAT_USAGE}
        assert reading.usage(body) == {"input": 9, "output": 4}
        moonshot = chat_chunk({}, "stop")
        moonshot["choices"][0]["usage"] = CHAT_USAGE
        assert assemble(sse(moonshot), None).body["usage"] == CHAT_USAGE

    def test_azure_begins_with_an_empty_chunk(self):
        first = {
            "id": "",
            "model": "",
            "created": 0,
            "object": "",
            "choices": [],
            "prompt_filter_results": [{"a": 1}],
        }
        body = assemble(sse(first, chat_chunk({"content": "a"}, "stop"), done=True), None).body
        assert (body["id"], body["model"], body["created"], body["object"]) == (
            "chatcmpl-1",
            "gpt-x",
            5,
            "chat.completion",
        )
        assert body["prompt_filter_results"] == [{"a": 1}]

    def test_openrouter_comments_and_its_error_in_the_middle(self):
        error = {"code": 502, "message": "Provider disconnected"}
        last = chat_chunk({"content": ""}, "error", error=error)
        data = b": OPENROUTER PROCESSING\n\n" + sse(chat_chunk({"content": "Hel"}), last)
        found = assemble(data, "openai")
        assert found.error == ("http_502", "Provider disconnected")
        assert found.problems == []
        assert found.body["choices"][0]["message"]["content"] == "Hel"
        assert reading.stop_reason(found.body) == "error"

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            ({"error": {"message": "no", "type": "server_error"}}, ("server_error", "no")),
            ({"error": "no"}, (None, "no")),
            ({"object": "error", "message": "no", "type": "BadRequestError"}, ("BadRequestError", "no")),
        ],
    )
    def test_an_error_object_as_a_data_line(self, error, expected):
        alone = assemble(sse(error), "openai")
        assert (alone.body, alone.error) == (error, expected)
        later = assemble(sse(chat_chunk({"content": "Hel"}), error, done=True), "openai")
        assert later.error == expected
        assert later.body["choices"][0]["message"]["content"] == "Hel"

    def test_a_bare_error_line_among_the_events(self):
        found = assemble(
            sse(chat_chunk({"content": "Hel"})) + b'{"error": {"message": "no", "code": "x"}}\n', None
        )
        assert found.error == ("x", "no")

    def test_without_done_it_is_complete_once_ended_and_billed(self):
        ended = chat_chunk({}, "stop")
        assert not assemble(sse(chat_chunk({"content": "a"}), ended), None).complete
        assert assemble(sse(chat_chunk({"content": "a"}), ended, chat_chunk(usage=CHAT_USAGE)), None).complete
        assert not assemble(sse(chat_chunk({"content": "a"}, usage=CHAT_USAGE)), None).complete

    def test_logprobs_are_joined(self):
        chunks = [chat_chunk({"content": text}) for text in "ab"]
        for chunk, token in zip(chunks, "ab", strict=True):
            chunk["choices"][0]["logprobs"] = {"content": [{"token": token}], "refusal": None}
        logprobs = assemble(sse(*chunks), None).body["choices"][0]["logprobs"]
        assert logprobs == {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}

    def test_old_completions_have_text(self):
        chunks = [{"object": "text_completion", "choices": [{"index": 0, "text": text}]} for text in "ab"]
        body = assemble(sse(*chunks, done=True), None).body
        assert (body["object"], body["choices"][0]["text"]) == ("text_completion", "ab")
        assert reading.text(body) == "ab"


class TestResponses:
    @pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
    def test_the_terminal_event_is_trusted(self, status):
        error = {"code": "server_error", "message": "no"} if status == "failed" else None
        final = {**RESPONSES_BODY, "status": status, "error": error}
        found = assemble(sse(*RESPONSES_EVENTS[:-1], response_event(status, response=final)), None)
        assert found.body == final
        assert found.complete
        assert found.error == (("server_error", "no") if error else None)

    def test_without_it_the_finished_items_are(self):
        found = assemble(sse(*RESPONSES_EVENTS[:-1]), None)
        assert not found.complete
        assert found.body == {**RESPONSE, "status": "in_progress", "output": RESPONSES_OUTPUT, "usage": None}

    def test_without_them_the_deltas_are(self):
        kept = [event for event in RESPONSES_EVENTS[:-1] if event["type"] != "response.output_item.done"]
        output = assemble(sse(*kept), None).body["output"]
        for item in output[1:]:
            assert item.pop("status") == "in_progress"
        assert output == [
            {**item} for item in (RESPONSES_OUTPUT[0], *map(without_status, RESPONSES_OUTPUT[1:]))
        ]

    def test_items_go_by_index_though_their_ids_change(self):
        events = [
            {**event, "item_id": f"rotated_{number}"} for number, event in enumerate(RESPONSES_EVENTS[:12])
        ]
        output = assemble(sse(*events), None).body["output"]
        assert output[1]["content"][0]["text"] == "Grüße 🌍"
        assert len(output) == 2

    def test_items_go_by_id_where_the_index_is_missing(self):
        item = {"type": "function_call", "name": "f", "arguments": ""}
        events = [
            {"type": "response.output_item.added", "item": {**item, "id": "a"}},
            {"type": "response.output_item.added", "item": {**item, "id": "b"}},
            {"type": "response.function_call_arguments.delta", "item_id": "a", "delta": "1"},
            {"type": "response.function_call_arguments.delta", "item_id": "b", "delta": "2"},
            {"type": "response.function_call_arguments.delta", "item_id": "a", "delta": "1"},
        ]
        output = assemble(sse(*events), None).body["output"]
        assert [item["arguments"] for item in output] == ["11", "2"]

    def test_a_final_response_without_output_gets_the_items(self):
        final = {**RESPONSES_BODY, "output": []}
        found = assemble(sse(*RESPONSES_EVENTS[:-1], response_event("completed", response=final)), None)
        assert found.body == RESPONSES_BODY

    @pytest.mark.parametrize(
        "error",
        [
            {"type": "error", "code": "server_error", "message": "no", "param": None},
            {"type": "error", "error": {"type": "server_error", "code": "x", "message": "no"}},
        ],
    )
    def test_an_error_event(self, error):
        found = assemble(sse(*RESPONSES_EVENTS[:12], error), None)
        assert found.error == ("server_error", "no")
        assert not found.complete
        assert reading.text(found.body) == "Grüße 🌍"
        assert assemble(sse(error), "openai-responses").error == ("server_error", "no")

    @pytest.mark.parametrize(
        ("kind", "fields", "item", "expected"),
        [
            (
                "refusal",
                {"content_index": 0},
                {"type": "message"},
                {"content": [{"type": "refusal", "refusal": "ab"}]},
            ),
            (
                "reasoning_text",
                {"content_index": 0},
                {"type": "reasoning"},
                {"content": [{"type": "reasoning_text", "text": "ab"}]},
            ),
            ("mcp_call_arguments", {}, {"type": "mcp_call"}, {"arguments": "ab"}),
            ("custom_tool_call_input", {}, {"type": "custom_tool_call"}, {"input": "ab"}),
            (
                "code_interpreter_call_code",
                {},
                {"type": "code_interpreter_call", "code": None},
                {"code": "ab"},
            ),
            (
                "shell_call_command",
                {"command_index": 0},
                {"type": "shell_call"},
                {"action": {"commands": ["ab"]}},
            ),
            (
                "apply_patch_call_operation_diff",
                {},
                {"type": "apply_patch_call", "operation": {"type": "create_file"}},
                {"operation": {"type": "create_file", "diff": "ab"}},
            ),
        ],
    )
    def test_every_text_that_comes_in_deltas(self, kind, fields, item, expected):
        events = [response_event("output_item.added", 0, item=item)]
        events += [response_event(f"{kind}.delta", 0, delta=piece, **fields) for piece in "ab"]
        assert assemble(sse(*events), None).body["output"] == [{**item, **expected}]

    def test_annotations_are_added(self):
        events = [*RESPONSES_EVENTS[:12]]
        events += [
            response_event("output_text.annotation.added", 1, content_index=0, annotation={"n": n})
            for n in (1, 2)
        ]
        part = assemble(sse(*events), None).body["output"][1]["content"][0]
        assert part["annotations"] == [{"n": 1}, {"n": 2}]

    def test_a_finished_item_is_not_changed_any_more(self):
        late = response_event("output_text.delta", 1, content_index=0, delta="late")
        assert assemble(sse(*RESPONSES_EVENTS[:13], late), None).body["output"] == RESPONSES_OUTPUT[:2]

    def test_an_item_that_begins_again_is_empty(self):
        output = assemble(sse(*RESPONSES_EVENTS[:10], *RESPONSES_EVENTS[7:11]), None).body["output"]
        assert output[1]["content"][0]["text"] == "Grüße 🌍"
        assert len(output) == 2

    def test_a_response_begun_anew(self):
        found = assemble(sse(*RESPONSES_EVENTS[:10], *RESPONSES_EVENTS), None)
        assert found.body == RESPONSES_BODY
        assert found.aborted[0]["output"][1]["content"][0]["text"] == "Grüße"


def without_status(item):
    return {key: value for key, value in item.items() if key != "status"}


def vertex(*pieces, name=None, more=True):
    call = {"name": name} if name else {}
    if pieces:
        call["partialArgs"] = [{"jsonPath": path, **value} for path, value in pieces]
    return {"functionCall": {**call, "willContinue": True} if more else call}


class TestGemini:
    def test_arguments_in_pieces(self):
        parts = [
            {**vertex(name="cook"), "thoughtSignature": "s"},
            vertex(("$.recipe.name", {"stringValue": "Las", "willContinue": True})),
            vertex(("$.recipe.name", {"stringValue": "agna"})),
            vertex(("$.recipe.steps[0]", {"stringValue": "Boil", "willContinue": True})),
            vertex(
                ("$.recipe.steps[0]", {"stringValue": "."}), ("$.recipe.steps[1]", {"stringValue": "Eat"})
            ),
            vertex(
                ("$.n", {"numberValue": 2}),
                ("$['a b'].c", {"boolValue": False}),
                ("$.x", {"nullValue": "NULL"}),
            ),
            vertex(more=False),
            vertex(name="wait"),
            vertex(name="serve"),  # the call before was never ended
        ]
        found = assemble(sse(*(gemini_piece([part]) for part in parts), gemini_piece([], "STOP")), None)
        assert found.problems == []
        assert found.body["candidates"][0]["content"]["parts"] == [
            {
                "functionCall": {
                    "name": "cook",
                    "args": {
                        "recipe": {"name": "Lasagna", "steps": ["Boil.", "Eat"]},
                        "n": 2,
                        "a b": {"c": False},
                        "x": None,
                    },
                },
                "thoughtSignature": "s",
            },
            {"functionCall": {"name": "wait", "args": {}}},
            {"functionCall": {"name": "serve", "args": {}}},
        ]

    @pytest.mark.parametrize(
        "path", ["$.a[999999999]", "$.a[-1]", "a", "$", "$.a['b", "$[0]", "$" + ".a" * 1000]
    )
    def test_a_path_that_cannot_be_is_a_problem_and_costs_nothing(self, path):
        found = assemble(sse(gemini_piece([vertex((path, {"stringValue": "x"}), name="f")])), None)
        assert len(found.problems) == 1
        assert len(json.dumps(found.body)) < 1000

    def test_a_signature_speaks_for_the_text_before_it(self):
        pieces = [[{"text": "a"}], [{"text": "b"}], [{"text": "", "thoughtSignature": "s"}], [{"text": "c"}]]
        found = assemble(sse(*map(gemini_piece, pieces)), None)
        assert found.body["candidates"][0]["content"]["parts"] == [
            {"text": "ab", "thoughtSignature": "s"},
            {"text": "c"},
        ]

    def test_usage_may_change_and_the_last_word_counts(self):
        events = [
            gemini_piece([{"text": "a"}], promptTokenCount=5),
            gemini_piece([], "STOP", promptTokenCount=8),
        ]
        assert assemble(sse(*events), None).body["usageMetadata"]["promptTokenCount"] == 8

    def test_a_blocked_prompt_is_complete_without_candidates(self):
        found = assemble(sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}), None)
        assert found.complete
        assert reading.stop_reason(found.body) == "content_filter"

    def test_candidates_by_index(self):
        def piece(index, text):
            return {
                "candidates": [
                    {"index": index, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
                ]
            }

        candidates = assemble(sse(piece(1, "b"), piece(0, "a")), None).body["candidates"]
        assert [c["content"]["parts"][0]["text"] for c in candidates] == ["a", "b"]

    @pytest.mark.parametrize("array", [True, False])
    def test_an_error_in_the_stream(self, array):
        error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
        events = [*GEMINI_EVENTS[:4], error]
        found = assemble(json.dumps(events, indent=2).encode() if array else sse(*events), "gemini")
        assert found.error == ("UNAVAILABLE", "overloaded")
        assert reading.text(found.body) == "Grüße 🌍"

    def test_a_plain_error_instead_of_a_stream_over_several_lines(self):
        error = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
        found = assemble(json.dumps(error, indent=2).encode(), "gemini", "application/json")
        assert (found.body, found.error) == (error, ("RESOURCE_EXHAUSTED", "slow down"))


class TestBedrock:
    def test_an_exception_frame_ends_it(self):
        data = frames(*BEDROCK_EVENTS[:7]) + exception("modelStreamErrorException", "model broke")
        found = assemble(data, "bedrock")
        assert found.error == ("modelStreamErrorException", "model broke")
        assert not found.complete
        assert reading.text(found.body) == "Grüße 🌍"

    def test_an_exception_alone_is_a_body_that_says_so(self):
        found = assemble(exception("throttlingException", "slow down"), "bedrock")
        assert reading.error_of(found.body) == found.error == ("throttlingException", "slow down")

    def test_an_exception_among_a_models_own_events(self):
        found = assemble(
            chunk_frames(*ANTHROPIC_EVENTS[:9]) + exception("modelTimeoutException", "late"), "bedrock"
        )
        assert found.error == ("modelTimeoutException", "late")
        assert found.body["content"][1]["text"] == "Grüße, "

    def test_it_is_complete_before_the_usage_comes(self):
        found = assemble(frames(*BEDROCK_EVENTS[:-1]), "bedrock")
        assert found.complete
        assert reading.usage(found.body) is None

    def test_hidden_thoughts_in_pieces_are_joined_as_bytes(self):
        pieces = [block_delta(0, reasoningContent={"redactedContent": text}) for text in ("YQ==", "YmM=")]
        content = assemble(frames(*pieces), "bedrock").body["output"]["message"]["content"]
        assert content == [{"reasoningContent": {"redactedContent": "YWJj"}}]

    def test_citations_and_tool_results(self):
        start = {
            "toolResult": {"toolUseId": "t", "type": "nova_code_interpreter_result", "status": "success"}
        }
        events = [
            block_delta(0, text="So"),
            block_delta(0, citation={"title": "a"}),
            block_delta(0, citation={"title": "b"}),
            {"contentBlockStart": {"contentBlockIndex": 1, "start": start}},
            block_delta(1, toolResult=[{"json": {"n": 1}}]),
        ]
        assert assemble(frames(*events), "bedrock").body["output"]["message"]["content"] == [
            {
                "citationsContent": {
                    "content": [{"text": "So"}],
                    "citations": [{"title": "a"}, {"title": "b"}],
                }
            },
            {"toolResult": {**start["toolResult"], "content": [{"json": {"n": 1}}]}},
        ]

    def test_nova_inside_invoke_speaks_converse(self):
        assert assemble(chunk_frames(*BEDROCK_EVENTS), None).body == STREAMS["bedrock"].body

    def test_tool_input_that_breaks_off_stays_text(self):
        found = assemble(frames(*BEDROCK_EVENTS[:10]), "bedrock")
        assert [use[:3] for use in reading.tool_uses(found.body)] == [("t1", "search", '{"q":')]


class TestOllama:
    def test_generate_has_a_bare_response(self):
        lines = [
            ollama_line(response="Grü"),
            ollama_line(response="ße"),
            ollama_line(response="", **OLLAMA_END),
        ]
        found = assemble(ndjson(*lines), None)
        assert found.complete
        assert found.body == {"model": "llama", "response": "Grüße", **OLLAMA_END}
        assert reading.text(found.body) == "Grüße"

    def test_an_error_line_ends_it(self):
        found = assemble(
            ndjson(ollama_line(message={"role": "assistant", "content": "Hel"}), {"error": "boom"}), None
        )
        assert (found.error, found.complete) == ((None, "boom"), False)
        assert found.body["message"]["content"] == "Hel"
        assert found.body["done"] is False

    def test_calls_of_several_lines_are_kept(self):
        one, two = ({"function": {"name": name, "arguments": {}}} for name in ("f", "g"))
        lines = [
            ollama_line(message={"role": "assistant", "content": "", "tool_calls": [each]})
            for each in (one, two)
        ]
        assert assemble(ndjson(*lines), "ollama").body["message"]["tool_calls"] == [one, two]


@pytest.mark.parametrize("name", ["anthropic", "chat", "responses", "bedrock"])
def test_an_answer_that_was_not_streamed_at_all_is_taken_as_it_is(name):
    body = STREAMS[name].body
    found = assemble(json.dumps(body).encode(), STREAMS[name].provider, "application/json")
    assert found.body == body
    assert found.complete


def test_cohere_says_why_it_failed():
    end = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "no"}}
    found = assemble(sse(end), "cohere")
    assert (found.error, found.body["finish_reason"]) == ((None, "no"), "ERROR")


@pytest.mark.parametrize("name", STREAMS)
def test_the_texts_of_a_stream_are_spoken_once_and_in_order(name: str) -> None:
    stream = STREAMS[name]
    found = list(spoken(stream.data))
    said = {
        sort: "".join(text for _, each, text in found if each == sort)
        for sort in ("text", "thinking", "tool")
    }
    assert said["text"] and reading.text(stream.body, stream.provider).startswith(said["text"])
    assert "search" in said["tool"] and (name == "chat" or said["thinking"])
    ends = [end for end, _, _ in found]
    assert ends == sorted(ends) and 0 < ends[0] and ends[-1] <= len(stream.data)
