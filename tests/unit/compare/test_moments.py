"""Two moments of one run: what the model could see then and cannot see now, by message and by word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger, Tap, UsageError
from reenact.compare.moments import EDITED, diff_moments
from reenact.compare.words import GONE, NEW
from reenact.recording.prompt import delta_of
from support.prompted import piped
from support.runs_to_debug import answer, user
from support.typed import typed

FACT = "I am allergic to peanuts, please keep that in mind."
SUMMARY = "The user plans five days in Lisbon and likes the sea."


class Talk:
    """Records model calls one after the other."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.tap = path, Tap(path, **options)

    def turn(
        self, messages: list[Any], reply: str = "Noted.", *uses: Any, lane: str | None = None, **more: Any
    ) -> None:
        body = {"model": "m", "max_tokens": 9, **more, "messages": messages}
        call = self.tap.record_model_request(body, "anthropic", **({"lane": lane} if lane else {}))
        self.tap.record_model_response(answer(reply, *uses, usage=(100, 5)), call=call)

    def debugger(self) -> Debugger:
        self.tap.close()
        return Debugger.load(self.path)


def told(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def compacted(path: Path, reply: str = SUMMARY, lane: str | None = None) -> Debugger:
    """Three turns of a conversation, a call that summarises its transcript, and what continues from the summary."""
    talk = Talk(path)
    first = [user(FACT)]
    second = [*first, told("Noted."), user("I like the sea.")]
    third = [*second, told("Fine."), user("I have five days.")]
    for messages in (first, second, third):
        talk.turn(messages)
    transcript = "\n".join(f"{each['role']}: {each['content']}" for each in third)
    talk.turn([user(f"Summarise this conversation:\n{transcript}")], reply, lane=lane)
    after = [user(f"Summary so far: {SUMMARY}"), told("Fine."), user("Where do I eat?")]
    talk.turn(after, lane=lane)
    talk.turn([*after, told("At the harbour."), user("And tomorrow?")], lane=lane)
    return talk.debugger()


def texts(diff: Any, sort: str) -> list[str]:
    return [(change.now or change.then).text for change in diff.of(sort)]


def test_a_dropped_fact_is_on_the_screen_and_not_the_call_that_summarised(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl")
    for then in (3, 4):
        diff = debugger.diff_turns(then, 5)
        assert (diff.then.turn, diff.now.turn, diff.summarised_in) == (3, 5, None if then == 3 else 4)
        assert texts(diff, GONE)[0] == FACT and diff.verdict == "different"
        assert f"Summary so far: {SUMMARY}" in texts(diff, NEW)
    shown = typed("debug", debugger.recording.path, "--at", "turn:5", "-c", "diff turn:4").out
    assert FACT in shown and "Turn 4 wrote a summary. Turn 5 is compared with turn 3" in shown
    assert "Summarise this conversation" not in shown


def test_without_a_turn_it_is_what_changed_since_the_conversation_that_was_replaced(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl")
    fifth = debugger.turns()[4].request
    assert diff_moments(debugger.recording, None, fifth).then.turn == 3
    delta = delta_of(debugger.recording, fifth)
    assert delta is not None and delta.previous == debugger.turns()[2].request
    assert FACT in typed("debug", debugger.recording.path, "--at", "turn:5", "-c", "diff").out


def test_the_first_screen_names_what_a_summary_left_out(tmp_path: Path) -> None:
    path = compacted(tmp_path / "run.jsonl").recording.path
    (line,) = [
        line for line in typed("show", path, COLUMNS="200").out.splitlines() if "turn 5 leaves out 3" in line
    ]
    assert FACT[:40] in line


def test_tags_around_a_summary_may_be_taken_off(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl", f"<summary>\n{SUMMARY}\n</summary>")
    assert debugger.diff_turns(4, 5).then.turn == 3


def test_a_call_whose_response_is_not_in_the_prompt_is_compared_as_named(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl", "I would rather not summarise.")
    diff = debugger.diff_turns(4, 5)
    assert (diff.then.turn, diff.summarised_in) == (4, None)


def test_a_summary_in_another_lane_replaces_the_conversation_of_the_first(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl", lane="lane-2")
    assert {turn.lane for turn in debugger.turns()} == {"main", "lane-2"}
    diff = debugger.diff_turns(4, 5)
    assert (diff.then.turn, texts(diff, GONE)[0]) == (3, FACT)


def test_one_turn_is_compared_with_the_last_and_a_growing_conversation_only_adds(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl")
    diff = debugger.diff_turns(5)
    assert (diff.then.turn, diff.now.turn, diff.same) == (5, 6, 3)
    assert texts(diff, NEW) == ["At the harbour.", "And tomorrow?"] and diff.of(GONE) == diff.of(EDITED) == []
    back = debugger.diff_turns(6, 5)
    assert texts(back, GONE) == ["At the harbour.", "And tomorrow?"] and not back.of(NEW)
    same = debugger.diff_turns(5, 5)
    assert not same and (same.verdict, same.changes) == ("same", ())


def test_each_message_has_its_role_its_origin_and_its_share_of_the_tokens(tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl")
    change = debugger.diff_turns(3, 5).of(GONE)[0]
    part = change.then
    assert part is not None and (part.role, part.number, part.source) == ("user", 0, "request")
    assert part.origin == (str(debugger.turns()[0].request.step),)
    assert part.tokens == round(part.share * 100) and 0 < part.share < 1


def test_what_still_stands_inside_another_message_is_marked(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "run.jsonl")
    talk.turn([user(FACT), told("Noted."), user("Where do I eat?")])
    notes = (
        "These are the notes of our conversation so far, in their order, as far as somebody wrote them down."
    )
    quoting = f"{notes} First, the user wrote: {FACT} Then somebody asked about restaurants."
    talk.turn([user(quoting), told("Fine, I have read that."), user("Go on then, please.")])
    change = talk.debugger().diff_turns(1, 2).of(GONE)[0]
    assert change.then is not None and (change.then.text, change.quoted_in) == (FACT, 0)


def test_an_edited_message_is_shown_word_by_word(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "price", "input": {"city": "Oslo"}}

    def result(text: str) -> dict[str, Any]:
        return {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}],
        }

    talk, asked = Talk(tmp_path / "run.jsonl"), {"role": "assistant", "content": [use]}
    tools = [{"name": "price", "description": "The price.", "input_schema": {"type": "object"}}]
    talk.turn(
        [user("How much?"), asked, result("900 EUR for two nights")], system="Answer in English.", tools=tools
    )
    tools = [{**tools[0], "description": "The fare."}]
    talk.turn([user("How much?"), asked, result("[cut]")], system="Answer in French.", tools=tools)
    diff = talk.debugger().diff_turns(1, 2)
    changed = {
        change.now.role: [tuple(each) for each in change.words if each.sort != "same"]
        for change in diff.of(EDITED)
        if change.now is not None
    }
    assert changed["system"] == [(GONE, "English"), (NEW, "French")]
    assert changed["tools"] == [(GONE, "price"), (NEW, "fare")]
    assert changed["tool"][0][0] == GONE and "900 EUR" in changed["tool"][0][1]
    assert len(diff.changes) == 3
    shown = typed("debug", talk.path, "--at", "turn:2", "-c", "diff turn:1").out
    assert "Answer in [-English-]{+French+}." in shown


def test_a_message_whose_text_stayed_says_which_fields_differ(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "run.jsonl")
    talk.turn([{"role": "user", "content": "How much is it?", "name": "ada"}])
    talk.turn([{"role": "user", "content": "How much is it?", "name": "bob"}])
    (change,) = talk.debugger().diff_turns(1, 2).changes
    assert (change.sort, change.words, change.fields) == (EDITED, (), ("name",))


def test_what_the_provider_keeps_counts_as_seen(tmp_path: Path) -> None:
    path, tap = tmp_path / "run.jsonl", Tap(tmp_path / "run.jsonl")
    for number, text in enumerate(("Find a hotel", "A cheap one")):
        before = {"previous_response_id": f"resp_{number - 1}"} if number else {}
        body = {"model": "m", "input": [{"role": "user", "content": text}], **before}
        call = tap.record_model_request(body, "openai")
        output = [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Which?"}]}
        ]
        reply = {"id": f"resp_{number}", "object": "response", "output": output, "status": "completed"}
        tap.record_model_response(reply, call=call)
    tap.close()
    diff = Debugger.load(path).diff_turns(1, 2)
    assert (diff.same, diff.now.messages, diff.now.not_sent) == (1, 3, 2)
    assert texts(diff, GONE) == [] and texts(diff, NEW) == ["Which?", "A cheap one"]
    assert [change.now.is_sent for change in diff.of(NEW) if change.now] == [False, True]
    assert "not sent" in typed("debug", path, "--at", "turn:2", "-c", "diff turn:1").out


def test_content_that_is_not_recorded_is_not_called_equal(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "run.jsonl", content="none")
    talk.turn([user("one")])
    talk.turn([user("two")])
    diff = talk.debugger().diff_turns(1, 2)
    assert diff and diff.verdict == "cannot tell", diff


@pytest.mark.parametrize(("then", "now"), [(0, 2), (2, 9), (-1, None), ("3", None), (True, 2)])
def test_a_turn_that_is_not_there_is_an_error_with_the_range(then: Any, now: Any, tmp_path: Path) -> None:
    debugger = compacted(tmp_path / "run.jsonl")
    with pytest.raises(UsageError, match="has no turn") as caught:
        debugger.diff_turns(then, now)
    assert caught.value.hint == "its turns are 1 to 6"


def test_a_run_without_a_model_call_and_a_first_turn_say_so(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "run.jsonl")
    tap.record_tool_call(tool_name="clock", args={})
    tap.close()
    with pytest.raises(UsageError) as caught:
        Debugger.load(tmp_path / "run.jsonl").diff_turns(1)
    assert caught.value.hint == "it has no model call"
    done = typed("debug", tmp_path / "run.jsonl", "-c", "diff")
    assert done.code == 2 and "no model call led to the event" in done.err


def test_the_verb_takes_any_address_and_speaks_json(tmp_path: Path) -> None:
    path = compacted(tmp_path / "run.jsonl").recording.path
    shown = piped(["j turn:3", "mark early", "j turn:5", "diff @early"], path).out
    assert FACT in shown and "turn 3 → turn 5" in shown
    found = json.loads(
        typed("debug", path, "--json", "--at", "turn:5", "-c", "diff turn:3").out.splitlines()[-1]
    )
    assert found["verdict"] == "different" and found["changes"][0]["then"]["text"] == FACT
    done = typed("debug", path, "--at", "turn:1", "-c", "diff")
    assert done.code == 2 and "turn 1 is the first of its lane" in done.err
