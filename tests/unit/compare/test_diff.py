"""``reenact.diff`` on runs of every front end: what counts as a difference, its cause, and what does not count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import Recording, StepLog, Tap, Trace, diff
from reenact.compare.masks import Masks
from reenact.errors import NoSuchRun, ReenactError, UsageError
from support.sample_runs import Sample, record

OWN = {
    each["name"]: each["messages"]
    for each in json.loads((Path(__file__).parent / "conversations.json").read_text())
}


def answer(
    number: int, text: str = "", uses: list[tuple[str, str, dict[str, Any]]] = (), **more: Any
) -> dict[str, Any]:  # type: ignore[assignment]
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": key, "name": name, "input": args} for key, name, args in uses]
    stop = "tool_use" if uses else "end_turn"
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": content,
        "stop_reason": stop, "usage": {"input_tokens": number, "output_tokens": 7}, **more,
    }  # fmt: skip


def agent(
    path: Path,
    *,
    price: Any = 82,
    ids: str = "a",
    text: str = "Casa is booked.",
    system: str = "You book hotels.",
    final: str | None = None,
    **body: Any,
) -> Path:
    """A run of two turns, recorded with a Tap: a price is fetched, and the model answers."""
    with Tap(path, name="agent") as tap:
        base = {"model": "claude-sonnet-4-6", "max_tokens": 500, "system": system, **body}
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Book a hotel."}]
        call = tap.record_model_request({**base, "messages": messages}, "anthropic")
        first = answer(1, "Let me see.", [(f"toolu_{ids}", "price", {"hotel": "casa"})])
        tap.record_model_response(first, call=call)
        used = tap.record_tool_call("price", {"hotel": "casa"}, tool_id=f"toolu_{ids}")
        tap.record_tool_result("price", price, call=used)
        result = {"type": "tool_result", "tool_use_id": f"toolu_{ids}", "content": json.dumps(price)}
        messages += [
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]},
        ]
        call = tap.record_model_request({**base, "messages": messages}, "anthropic")
        tap.record_model_response(answer(2, final or text), call=call)
    return path


def causes(found: reenact.compare.report.RunDiff) -> list[tuple[str, str]]:  # type: ignore[name-defined]
    return [(each.cause, each.detail) for each in found.roots]


def test_a_run_against_itself_and_against_one_with_fresh_ids_is_the_same(tmp_path: Path) -> None:
    one = agent(tmp_path / "one.jsonl")
    other = agent(tmp_path / "renamed" if False else tmp_path / "other.jsonl", ids="b")
    for right in (one, other):
        found = diff(one, right)
        assert found.verdict == "same" and not found and not found.differences and not found.rows[:0]
    assert diff(one, one).notes == ("both are the same run",)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"price": 140}, ("tool-output-changed", "")),
        ({"text": "Plaza is booked."}, ("same-request-different-response", "text")),
        ({"system": "You book cheap hotels."}, ("prompt-changed", "system")),
        ({"temperature": 0.2}, ("prompt-changed", "settings")),
        ({"tools": [{"name": "price", "input_schema": {"type": "object"}}]}, ("prompt-changed", "tools")),
        ({"model": "claude-opus-4"}, ("model-changed", "")),
    ],
)
def test_one_change_is_one_root_with_its_cause(
    tmp_path: Path, change: dict[str, Any], cause: tuple[str, str]
) -> None:
    found = diff(agent(tmp_path / "one.jsonl"), agent(tmp_path / "other.jsonl", ids="b", **change))
    assert found.verdict == "different" and causes(found) == [cause]
    assert all(line for line in found.headline) and found.roots[0].because and found.roots[0].changes


def test_what_follows_from_a_root_names_it(tmp_path: Path) -> None:
    found = diff(
        agent(tmp_path / "one.jsonl"), agent(tmp_path / "other.jsonl", price=140, final="Too expensive.")
    )
    root, later = found.differences
    assert (root.cause, later.cause, later.follows) == (
        "tool-output-changed", "same-request-different-response", root.number,
    )  # fmt: skip
    assert (root.changes[0].left, root.changes[0].right) == (82, 140)


def test_cache_marks_defaults_and_streaming_do_not_count(tmp_path: Path) -> None:
    marked = [{"type": "text", "text": "You book hotels.", "cache_control": {"type": "ephemeral"}}]
    other = agent(tmp_path / "other.jsonl", system=marked, stream=True, temperature=1)  # type: ignore[arg-type]
    assert diff(agent(tmp_path / "one.jsonl"), other).verdict == "same"


def test_a_change_within_a_result_is_shown_by_its_path(tmp_path: Path) -> None:
    one = agent(tmp_path / "one.jsonl", price={"rooms": [{"price": 1}, {"price": 2}], "at": "10:00"})
    other = agent(tmp_path / "other.jsonl", price={"rooms": [{"price": 1}, {"price": 3}], "at": "11:00"})
    found = diff(one, other)
    assert {change.path for change in found.roots[0].changes} == {"rooms[1].price", "at"}


def test_masks_hide_a_place_and_its_echo_in_the_prompt(tmp_path: Path) -> None:
    one = agent(tmp_path / "one.jsonl", price={"price": 1, "at": "10:00"})
    other = agent(tmp_path / "other.jsonl", price={"price": 1, "at": "11:00"})
    assert diff(one, other).verdict == "different"
    assert diff(one, other, ignore=["tool.price.result.at"]).verdict == "same"
    assert diff(one, other, ignore=["tool.*.result.**.at"]).verdict == "same"
    assert diff(one, other, masks=Masks(patterns=[r"\d\d:\d\d"])).verdict == "same"
    with pytest.raises(UsageError, match="not a path to ignore"):
        diff(one, other, ignore=["nonsense"])


def test_masks_stand_in_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = agent(tmp_path / "one.jsonl", price={"at": "10:00"})
    other = agent(tmp_path / "other.jsonl", price={"at": "11:00"})
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.reenact.diff]\nignore = ["tool.price.result.at"]\n')
    assert diff(one, other).verdict == "same"
    Path("pyproject.toml").write_text('[tool.reenact.diff]\nignored = ["tool.price.result.at"]\n')
    with pytest.raises(UsageError, match="is not a setting"):
        diff(one, other)


def test_a_place_that_differs_every_time_is_proposed_and_not_applied(tmp_path: Path) -> None:
    def loop(path: Path, clock: int) -> Path:
        with Trace(path, name="loop") as trace:
            for number in range(3):
                trace.step(
                    "tool_call",
                    tool="now",
                    args={"n": number},
                    output={"n": number, "at": clock + number},
                    duration_ms=1,
                )
        return path

    found = diff(loop(tmp_path / "one.jsonl", 100), loop(tmp_path / "other.jsonl", 200))
    assert found.masks == ("tool.now.result.at",) and len(found.roots) == 3


def test_redacted_and_cut_values_are_never_equal(tmp_path: Path) -> None:
    def run(path: Path, key: str) -> Path:
        return agent(path, price=f"the key is {key}")

    one, other = (run(tmp_path / f"{n}.jsonl", f"sk-ant-api03-{n * 40}AA") for n in "xy")
    found = diff(one, other)
    assert found.verdict == "cannot tell" and found and found.unknown
    assert diff(one, one).verdict == "same"
    answers = [
        agent(tmp_path / f"{n}2.jsonl", price=f"the key is sk-ant-api03-{n * 40}AA", final=n) for n in "xy"
    ]
    assert causes(diff(*answers)) == [("truncated-comparison", "redacted")]


def test_an_inserted_step_is_exactly_one_difference(tmp_path: Path) -> None:
    messages = OWN["lisbon"]
    use = {
        "id": "call_9",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'},
    }
    extra = [
        {"role": "assistant", "tool_calls": [use]},
        {"role": "tool", "tool_call_id": "call_9", "content": "sun"},
    ]
    one = record(Sample("a", None, messages), tmp_path / "one.jsonl")
    other = record(Sample("a", None, [*messages[:4], *extra, *messages[4:]]), tmp_path / "other.jsonl")
    found, mirrored = diff(one, other), diff(other, one)
    assert [each.cause for each in found.differences] == ["extra-step"] and len(
        found.differences[0].right
    ) == 2
    assert [each.cause for each in mirrored.differences] == ["missing-step"]
    assert found.same_again == (3, 5)


def test_moved_source_lines_are_no_difference(tmp_path: Path) -> None:
    def run(path: Path, line: int) -> Path:
        with Tap(path, name="agent") as tap:
            used = tap.record_tool_call("read", {"path": "a"})
            trace = f'Traceback (most recent call last):\n  File "agent.py", line {line}, in read\nOSError: no such file'
            tap.record_tool_result("read", trace, call=used)
        return path

    assert diff(run(tmp_path / "one.jsonl", 3), run(tmp_path / "other.jsonl", 8)).verdict == "same"


def test_runs_of_trace_and_step_log(tmp_path: Path) -> None:
    def traced(path: Path, plan: str) -> Path:
        with Trace(path, name="agent") as trace:
            trace.step("plan", goal=plan, elapsed=len(path.name))
            trace.step("llm_call", content=f"I will {plan}", usage={"input": 3})
            trace.step("final", output=f"done: I will {plan}")
        return path

    def logged(path: Path, output: str) -> Path:
        log = StepLog(path)
        log.record_llm_call(
            model="gpt-4o", input_tokens=10, output_tokens=len(path.name), stop_reason="tool_use"
        )
        log.record_tool_call("search", {"q": "x"}, output, duration_ms=3.0)
        log.close()
        return path

    one = traced(tmp_path / "one.jsonl", "book")
    assert diff(one, traced(tmp_path / "same.jsonl", "book")).verdict == "same"
    found = diff(one, traced(tmp_path / "other.jsonl", "cancel"))
    assert found.first is not None and found.first.cause == "code-changed" and found.first.number == 1
    assert [each.follows for each in found.differences if not each.is_root]
    assert (
        diff(logged(tmp_path / "l1.jsonl", "3 hits"), logged(tmp_path / "l2.jsonl", "3 hits")).verdict
        == "same"
    )
    assert causes(diff(tmp_path / "l1.jsonl", logged(tmp_path / "l3.jsonl", "none"))) == [
        ("tool-output-changed", "")
    ]


def test_without_a_second_run_it_is_the_one_before_of_its_name(tmp_path: Path) -> None:
    older, newer = agent(tmp_path / "1.jsonl"), agent(tmp_path / "2.jsonl", price=140)
    found = diff(newer)
    assert (found.left.path, found.right.path) == (str(older), str(newer))
    with pytest.raises(NoSuchRun, match="no earlier run named agent"):
        diff(older)


def test_unusable_input_is_a_sentence(tmp_path: Path) -> None:
    one = agent(tmp_path / "one.jsonl")
    with Trace(tmp_path / "empty.jsonl", name="empty"):
        pass
    (tmp_path / "foreign.jsonl").write_text('{"type": "user", "uuid": "1", "sessionId": "2"}\n')
    for other in ("empty.jsonl", "foreign.jsonl", "missing.jsonl"):
        with pytest.raises(ReenactError):
            diff(one, tmp_path / other)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(one.read_bytes()[:-400] + b"\xff\xfe garbage\n")
    assert diff(one, damaged).verdict in ("different", "cannot tell")


def test_unrelated_runs_say_so(tmp_path: Path) -> None:
    one = record(Sample("a", None, OWN["long"]), tmp_path / "one.jsonl")
    with Trace(tmp_path / "other.jsonl", name="b") as trace:
        for number in range(12):
            trace.step("tick", number=number)
    found = diff(one, tmp_path / "other.jsonl")
    assert any("hardly a step in common" in note for note in found.notes)


def test_a_retried_model_call_is_one_difference(tmp_path: Path) -> None:
    def run(path: Path, attempts: int) -> Path:
        with Tap(path, name="agent") as tap:
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
            for attempt in range(1, attempts + 1):
                call = tap.record_model_request(body, "anthropic", attempt=attempt)
                if attempt < attempts:
                    tap.record_model_response(call=call, error="overloaded")
            tap.record_model_response(answer(1, "hello"), call=call)
        return path

    found = diff(run(tmp_path / "one.jsonl", 1), run(tmp_path / "other.jsonl", 3))
    assert causes(found) == [("loop-count", "retries")] and "1 attempts" in found.roots[0].because


def test_a_report_is_frozen_and_becomes_json(tmp_path: Path) -> None:
    found = diff(agent(tmp_path / "one.jsonl"), agent(tmp_path / "other.jsonl", price=140))
    data = json.loads(json.dumps(found.as_dict()))
    assert data["verdict"] == "different" and data["differences"][0]["cause"] == "tool-output-changed"
    with pytest.raises(AttributeError):
        found.verdict = "same"  # type: ignore[misc]
    assert isinstance(diff(Recording.load(tmp_path / "one.jsonl"), tmp_path / "other.jsonl").left.steps, int)


def test_parallel_lanes_are_compared_each_with_its_own(tmp_path: Path) -> None:
    """Two workers take turns as it happens; the second one is sent another answer in one run."""

    def run(path: Path, order: str, tide: str) -> Path:
        with Tap(path, name="agent") as tap:
            for lane in order:
                tide_or_price = tide if lane == "b" else "82 EUR"
                used = [(f"toolu_{path.stem}{lane}", "look", {"at": lane})]
                messages: list[dict[str, Any]] = [{"role": "user", "content": f"You are worker {lane}."}]
                call = tap.record_model_request({"model": "m", "messages": messages}, "anthropic", lane=lane)
                first = answer(1, uses=used)
                tap.record_model_response(first, call=call)
                result = {"type": "tool_result", "tool_use_id": used[0][0], "content": tide_or_price}
                messages += [
                    {"role": "assistant", "content": first["content"]},
                    {"role": "user", "content": [result]},
                ]
                call = tap.record_model_request({"model": "m", "messages": messages}, "anthropic", lane=lane)
                tap.record_model_response(answer(2, f"{lane} says {tide_or_price}"), call=call)
        return path

    one = run(tmp_path / "one.jsonl", "abc", "low tide")
    assert diff(one, run(tmp_path / "turned.jsonl", "cba", "low tide")).verdict == "same"
    found = diff(one, run(tmp_path / "other.jsonl", "cab", "high tide"))
    assert causes(found) == [("tool-output-changed", "")]
    assert {step.lane for each in found.differences for step in (*each.left, *each.right)} == {"b"}


def test_another_model_that_answered_is_a_cause_of_its_own(tmp_path: Path) -> None:
    def run(path: Path, served: str, text: str) -> Path:
        with Tap(path, name="agent") as tap:
            body = {"model": "claude-sonnet-4-6", "messages": [{"role": "user", "content": "hi"}]}
            call = tap.record_model_request(body, "anthropic")
            tap.record_model_response(answer(1, text, model=served), call=call)
        return path

    one = run(tmp_path / "one.jsonl", "claude-sonnet-4-6", "hello")
    dated = "claude-sonnet-4-6-20260101"
    assert causes(diff(one, run(tmp_path / "2.jsonl", dated, "good day"))) == [("served-model-changed", "")]
    assert causes(diff(one, run(tmp_path / "3.jsonl", "claude-sonnet-4-6", "good day"))) == [
        ("same-request-different-response", "text")
    ]


def test_a_value_cut_by_the_recorder_is_never_equal(tmp_path: Path) -> None:
    """Both results are nested deeper than a recorder writes, and what differs is below that."""

    def run(path: Path, bottom: str) -> Path:
        value: Any = bottom
        for _ in range(150):
            value = [value]
        return agent(path, price=value)

    found = diff(run(tmp_path / "one.jsonl", "82 EUR"), run(tmp_path / "other.jsonl", "97 EUR"))
    assert "$cut" in (tmp_path / "one.jsonl").read_text()
    assert [(each.part, each.why) for each in found.unknown][:1] == [("tool call", "cut")]
