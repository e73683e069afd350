"""A very large run opened by its two ends, its calls and turns found without reading all: as if it were read whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact import Recording, Tap
from reenact.errors import NoSuchEvent, NotIndexed
from reenact.recording import recording as recordings
from reenact.recording.calls import join_calls
from reenact.tracefile import columns
from reenact.tracefile.events import event_source
from support.runs_to_debug import answer, request, user


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in segments; what counts as large is small here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module, name, value in (
        (columns, "KEEP_FROM", 5_000), (columns, "LARGE", 1), (columns, "_ENOUGH", 50), (columns, "_FEWEST", 40),
        (columns, "_MOST_ENDS", 40_000), (recordings, "SMALL_EVENTS", 10), (event_source, "_LARGE", 1_000),
        (event_source, "_FEW", 1_500),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    path = tmp_path / "large.jsonl"
    with Tap(path, name="large", segment_bytes=50_000) as tap:
        messages = [user("go")]
        for turn in range(200):
            call = tap.record_model_request(request(*messages), "anthropic")
            response = answer(f"turn {turn}", (f"t{turn}", "look", {"q": turn}))
            tap.record_model_response(response, call=call)
            messages += [{"role": "assistant", "content": response["content"]}, user(f"more {turn}")]
            if turn % 3 == 0:
                tap.record_tool_result(
                    "look", "found", call=tap.record_tool_call("look", {}, tool_id=f"t{turn}")
                )
    return path


def test_the_ends_are_as_in_the_whole_and_the_middle_is_waited_for(large: Path) -> None:
    ends, whole = Recording.load_ends(str(large)), Recording.load(large)
    assert ends is not None and len(ends.shelf.sources) > 2
    assert (ends.status, ends.tot, ends.name) == (whole.status, whole.tot, "large")
    last = len(whole.lines) - 1
    assert len(ends.lines) == last + 1
    for at in (0, 1, 40, last - 40, last):
        assert ends.lines[at].payload == whole.lines[at].payload
    with pytest.raises(NotIndexed):
        ends.lines[last // 2]
    event = ends.lines[last - 1]
    assert ends.context_at(event) == whole.context_at(whole.lines[last - 1])


def test_a_run_whose_index_is_kept_is_opened_whole(large: Path) -> None:
    Recording.load(large)
    assert Recording.load_ends(str(large)) is None


@pytest.mark.parametrize("segment", [0, -1])
def test_a_foreign_line_at_the_end_of_a_segment_counts_as_in_the_whole(segment: int, large: Path) -> None:
    segments = sorted(large.parent.glob("large*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    with segments[segment].open("ab") as file:
        file.write(b'{"ts": 1, "other": true}\n')
    ends, whole = Recording.load_ends(str(large)), Recording.load(large)
    assert ends is None or (ends.status, len(ends.lines)) == (whole.status, len(whole.lines))


def test_calls_are_found_by_halving_the_file(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording.load(large)
    ends = [(call.id, call.end) for call in join_calls(recording.events) if call.kind == "model"]
    fresh = Recording.load(large)
    monkeypatch.setattr(event_source.Shelf, "_scan", lambda shelf: False)
    for name, end in ends:
        request = fresh.request_of(str(name))
        assert request is not None and request.call == name and end is not None
        assert fresh.shelf._place(str(name), True) == end.stored_at
    assert fresh.request_of("0" * 16) is None


def test_a_turn_is_found_by_its_number(large: Path) -> None:
    recording = Recording.load(large)
    found = [recording.event(f"turn:{number}").step for number in range(1, 201)]
    assert not recording.has_joined
    assert found == [turn.request.step for turn in Recording.load(large).turns()]
    with pytest.raises(NoSuchEvent, match="turn:201"):
        recording.event("turn:201")
