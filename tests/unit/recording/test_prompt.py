"""What is new in a prompt: one comparison, for `show` and for the debugger."""

from __future__ import annotations

from reenact.recording.origins import Origins
from reenact.recording.prompt import delta_of
from reenact.recording.recording import Recording
from reenact.testing import write_trace
from support.typed import typed


def request(call, *messages, **more):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, **more, "messages": list(messages)}
    return "model.request", {"call": call, "provider": "anthropic", "body": body}


def user(text, **more):
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def test_a_marker_of_the_cache_that_moves_is_no_change_anywhere(tmp_path):
    path, mark = tmp_path / "cached.jsonl", {"cache_control": {"type": "ephemeral"}}
    write_trace(
        path,
        [
            request("a", user("one", **mark)),
            ("model.response", {"call": "a", "provider": "anthropic"}),
            request("b", user("one"), user("two", **mark)),
        ],
    )
    recording = Recording.load(path)
    delta = delta_of(recording, recording.events[2])
    assert (delta.kept, delta.gone, [part.text for part in delta.parts]) == (1, 0, ["two"])
    assert "1 kept, 1 new since" in typed("debug", path, "--at", "last", "-c", "delta").out
    turn = typed("show", path, "--json", "--turns").rows[-1]
    assert [piece["text"] for piece in turn["new"]] == ["two"] and turn["changed"] == []


def test_a_message_taken_out_of_the_middle_leaves_the_others_as_they_are(tmp_path):
    path = tmp_path / "cut.jsonl"
    write_trace(path, [request("a", *map(user, "abc")), request("b", *map(user, "acd"))])
    recording = Recording.load(path)
    delta = delta_of(recording, recording.events[1])
    assert (delta.kept, delta.gone, [part.text for part in delta.parts]) == (2, 1, ["d"])
    turn = typed("show", path, "--json", "--turns").rows[-1]
    assert turn["changed"] == [{"what": "history", "how": "rewritten: 1 message dropped"}]


def test_a_circle_of_bases_is_not_gone_round(tmp_path):
    """It took seconds of a run of two requests: the origin of each message was looked for 5,000 times."""
    first, second = request("a", user("one")), request("b", user("two"))
    first[1].update(base="b", keep={"messages": 1})
    second[1].update(base="a", keep={"messages": 1})
    notes = [("note", {"text": str(number)}) for number in range(20)]
    write_trace(tmp_path / "circle.jsonl", [*notes, first, *notes, second])
    recording = Recording.load(tmp_path / "circle.jsonl")
    for event in recording.events:
        if event.kind == "model.request":
            origins = Origins(recording)
            looks = origins._looks
            origins.of(event)
            assert looks - origins._looks < 2 * recording.count()
