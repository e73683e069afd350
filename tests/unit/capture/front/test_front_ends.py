"""Trace, StepLog and Tap: wrong arguments, after close, policies, pairing of calls, decorated tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import StepLog, Tap, Trace, UsageError, schema
from reenact.capture import guard
from support.capture_files import events, kinds, of, one


@pytest.mark.parametrize(
    "options",
    [
        {"redact": "yes"}, {"content": "some"}, {"durability": "never"}, {"max_bytes": "5 GB"}, {"max_bytes": -1},
        {"min_free": 2}, {"min_free": True}, {"segment_bytes": 1.5}, {"retain": "some"}, {"retain": 1.5},
        {"retain": True}, {"meta": ["a"]}, {"name": 5}, {"bus": print}, {"unknown": 1},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("front_end", [Trace, StepLog, Tap])
def test_a_wrong_option_is_a_usage_error_with_a_hint(
    front_end: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        front_end(tmp_path / "run.jsonl", **options)
    assert caught.value.hint or "min_free" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["s3://bucket/run.jsonl", "gs://b/r", "https://x/y", "", 5, 1.5, "a\0b", [], b""], ids=repr
)
@pytest.mark.parametrize("front_end", [Trace, StepLog, Tap])
def test_a_path_that_can_never_be_one_is_a_usage_error(front_end: Any, path: Any) -> None:
    with pytest.raises(UsageError):
        front_end(path)
    with pytest.raises(ValueError):  # which it also is
        front_end(path)


def test_other_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Tap(writer=5)
    with pytest.raises(UsageError):
        StepLog(tmp_path / "a.jsonl", run_id="")
    with pytest.raises(UsageError):
        StepLog(tmp_path / "a.jsonl", run_id=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        Tap(tmp_path / "a.jsonl", redact=False).tool(5)  # type: ignore[call-overload]
    with pytest.raises(UsageError):
        reenact.private("full")


def test_paths_may_be_text_bytes_or_path_objects(tmp_path: Path) -> None:
    for path in (
        str(tmp_path / "a.jsonl"),
        bytes(tmp_path / "b.jsonl"),
        tmp_path / "c.jsonl",
        tmp_path / "new" / "d",
    ):
        with Trace(path, redact=False) as trace:
            trace.step("work")
        assert kinds(trace.path) == ["run.start", "work", "run.end"]


def test_recording_after_close_is_reported_once_counted_and_never_raises(tmp_path: Path, capsys: Any) -> None:
    guard.forget()
    trace = Trace(tmp_path / "run.jsonl", redact=False)
    trace.step("before")
    trace.close()
    trace.close()
    for _ in range(3):
        trace.step("after")
    assert trace.lost == 3
    assert kinds(tmp_path / "run.jsonl") == ["run.start", "before", "run.end"]
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_block_that_fails_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broke"), Trace(tmp_path / "run.jsonl", redact=False):
        raise ValueError("broke")
    assert one(tmp_path / "run.jsonl", "error")["error"]["type"] == "ValueError"
    assert one(tmp_path / "run.jsonl", "run.end")["status"] == "error"


@pytest.mark.parametrize("content", ["hash", "none"])
def test_withheld_content_is_not_in_the_bytes_and_counts_are(content: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    words = "confidential words of the customer"
    with reenact.run(
        "trip", input={"task": words}, path=path, content=content, redact=False, metadata={"env": "prod"}
    ):
        tap = Tap()
        call = tap.record_model_request({"model": "m-1", "messages": [{"role": "user", "content": words}]})
        answer = {"model": "m-1", "content": [{"type": "text", "text": words}], "stop_reason": "end_turn",
                  "usage": {"input_tokens": 7, "output_tokens": 3}}  # fmt: skip
        tap.record_model_response(answer, call=call)
        tool = tap.record_tool_call("search", {"q": words})
        tap.record_tool_result("search", words, error=ValueError(words), call=tool)
        Trace().step("note", text=words, number=5)
    data = path.read_text()
    assert "confidential" not in data
    start, end = one(path, "run.start"), one(path, "run.end")
    assert start["name"] == "trip" and start["meta"] == {"env": "prod"} and isinstance(start["host"], str)
    assert end["tot"] == {"turns": 1, "in": 7, "out": 3, "err": 1} and end["status"] == "ok"
    assert one(path, "model.response")["stop_reason"] == "end_turn"
    assert one(path, "tool.called")["tool"] == "search"
    assert one(path, "tool.result")["error"]["type"] == "ValueError"
    note = one(path, "note")
    assert note["number"] == 5
    assert ("$hash" in note["text"]) == (content == "hash") and note["text"]["bytes"] == len(words) + 2


def test_hashes_are_equal_for_equal_content(tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl", content="hash", redact=False) as trace:
        for text in ("same", "same", "other"):
            trace.step("note", text=text)
    first, second, third = (event["text"] for event in of(tmp_path / "run.jsonl", "note"))
    assert first == second != third


def test_a_private_block_withholds_and_what_is_around_it_is_full(tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl", redact=False) as trace:
        trace.step("note", text="before")
        with reenact.private():
            trace.step("note", text="secret inside")
            with reenact.private("hash"):
                trace.step("note", text="secret inside")
        trace.step("note", text="after")
    texts = [event["text"] for event in of(tmp_path / "run.jsonl", "note")]
    assert texts[0] == "before" and texts[3] == "after"
    assert texts[1] == {"$none": True, "bytes": 15}
    assert "$hash" in texts[2] or "$none" in texts[2]
    assert "secret" not in (tmp_path / "run.jsonl").read_text()


def test_a_child_process_is_linked_under_every_policy(tmp_path: Path) -> None:
    import os

    trace = Trace(tmp_path / "run.jsonl", content="none", redact=False)
    pid = os.fork()
    if pid == 0:
        trace.step("child")
        os._exit(0)
    os.waitpid(pid, 0)
    trace.close()
    (child,) = tmp_path.glob("run.p*.jsonl")
    assert one(child, "proc.start")["parent_w"] == one(tmp_path / "run.jsonl", "run.start")["w"]


def test_results_find_their_calls_by_id_then_by_name_in_the_task(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def main() -> None:
        async def tool(n: int) -> str:
            call = tap.record_tool_call("same", {"n": n})
            await asyncio.sleep(0.001 * (5 - n))
            tap.record_tool_result("same", n)  # no call=: the open one of this task
            return call

        calls = await asyncio.gather(*(tool(n) for n in range(5)))
        assert {event["call"]: event["result"] for event in of(path, "tool.result")} == dict(
            zip(calls, range(5), strict=True)
        )

    with Tap(path, redact=False) as tap:
        asyncio.run(main())
        first, second = tap.record_tool_call("a", {}), tap.record_tool_call("b", {})
        tap.record_tool_result("a", "of a")
        tap.record_tool_result("b", "of b", call=second)
        tap.record_tool_result("unknown", "of nobody")
    found = {event["tool"]: event for event in of(path, "tool.result")}
    assert found["a"]["call"] == first and found["b"]["call"] == second
    assert found["unknown"]["call"] is None


def test_a_tool_is_linked_to_the_response_that_requested_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path, redact=False) as tap:
        request = tap.record_model_request(
            {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
        )
        uses = [
            {"type": "tool_use", "id": f"toolu_{n}", "name": "search", "input": {"q": n, "p": 1}}
            for n in range(2)
        ]
        tap.record_model_response(
            {"role": "assistant", "content": uses, "stop_reason": "tool_use"}, call=request
        )
        tap.record_tool_result("search", 1, call=tap.record_tool_call("search", {"p": 1, "q": 1}))
        tap.record_tool_result("search", 0, call=tap.record_tool_call("search", {"q": 0, "p": 1}))
        tap.record_tool_call("search", {"q": 7})
    called = of(path, "tool.called")
    assert [event["tool_id"] for event in called] == ["toolu_1", "toolu_0", None]
    assert {event["parent"] for event in called} == {request}
    assert [event["tool_id"] for event in of(path, "tool.result")] == ["toolu_1", "toolu_0"]


class Stop(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [None, ValueError("broke"), Stop("stopped"), asyncio.CancelledError()], ids=repr
)
def test_a_decorated_tool_of_every_kind_is_recorded_and_unchanged(
    error: BaseException | None, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    tap = Tap(path, redact=False)

    @tap.tool
    def plain(a: int, b: int = 2) -> int:
        if error:
            raise error
        return a + b

    @tap.tool(name="renamed")
    async def coroutine(a: int) -> int:
        await asyncio.sleep(0)
        if error:
            raise error
        return a

    @tap.tool
    def generator(n: int) -> Iterator[int]:
        yield from range(n)
        if error:
            raise error

    @tap.tool
    async def async_generator(n: int) -> AsyncIterator[int]:
        for item in range(n):
            yield item
        if error:
            raise error

    async def drain() -> list[int]:
        return [item async for item in async_generator(3)]

    attempts: list[tuple[Any, Any]] = [
        (lambda: plain(1), 3),
        (lambda: asyncio.run(coroutine(5)), 5),
        (lambda: list(generator(3)), [0, 1, 2]),
        (lambda: asyncio.run(drain()), [0, 1, 2]),
    ]
    for attempt, expected in attempts:
        if error is None:
            assert attempt() == expected
        else:
            with pytest.raises(type(error)):
                attempt()
    tap.close()
    assert [event["tool"] for event in of(path, "tool.called")] == [
        "plain",
        "renamed",
        "generator",
        "async_generator",
    ]
    assert [event["args"] for event in of(path, "tool.called")] == [{"a": 1}, {"a": 5}, {"n": 3}, {"n": 3}]
    results = of(path, "tool.result")
    assert [event["call"] for event in results] == [event["call"] for event in of(path, "tool.called")]
    for event in results:
        assert (event["error"] or {}).get("type") == (type(error).__name__ if error else None)
        assert event["duration_ms"] >= 0
    if error is None:
        assert [event["result"] for event in results[:2]] == [3, 5]
    assert all(event["result"]["yielded"] == [0, 1, 2] for event in results[2:])


def test_a_cancelled_tool_says_so_and_stays_cancelled(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "run.jsonl", redact=False)

    @tap.tool
    async def slow() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    tap.close()
    assert one(tmp_path / "run.jsonl", "tool.result")["error"]["type"] == "CancelledError"


def test_a_tool_called_wrongly_raises_its_own_type_error(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "run.jsonl", redact=False)

    class Kit:
        @tap.tool
        def method(self, a: int) -> int:
            return a

    assert Kit().method(4) == 4
    with pytest.raises(TypeError, match="unexpected keyword"):
        Kit().method(b=1)  # type: ignore[call-arg]
    tap.close()
    first, second = of(tmp_path / "run.jsonl", "tool.called")
    assert first["args"] == {"a": 4}
    assert "kwargs" in second["args"] and one(tmp_path / "run.jsonl", "run.end")["tot"]["err"] == 1


@pytest.mark.parametrize("size", [1, 200, 5_000])
def test_small_segments_each_begin_with_a_head_and_lose_nothing(size: int, tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl", segment_bytes=size, redact=False) as trace:
        for seq in range(60):
            trace.step("work", seq=seq, text="x" * 100)
    segments = [tmp_path / "run.jsonl", *sorted(tmp_path.glob("run.s*.jsonl"))]
    assert len(segments) > 1
    found = [event for path in segments for event in events(path)]
    assert [event["step"] for event in found] == list(range(1, len(found) + 1))
    assert [event["seq"] for event in found if event["kind"] == "work"] == list(range(60))
    for number, path in enumerate(segments[1:], 1):
        head = events(path)[0]
        assert (head["kind"], head["segment"], head["v"]) == ("run.more", number, schema.VERSION)


def test_a_shared_file_does_not_rotate(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with (
        Trace(path, segment_bytes=2_000, redact=False) as one_trace,
        Trace(path, segment_bytes=2_000, redact=False) as two,
    ):
        for seq in range(50):
            one_trace.step("work", seq=seq, text="x" * 100)
            two.step("work", seq=seq, text="x" * 100)
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    assert kinds(path).count("work") == 100


@pytest.mark.parametrize(
    ("retain", "fails", "kept"),
    [("all", False, True), ("failed", False, False), ("failed", True, True), (0, False, False), (0, True, True),
     (1, False, True)],
)  # fmt: skip
def test_retain_decides_at_the_end(retain: Any, fails: bool, kept: bool, tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl", retain=retain, redact=False, segment_bytes=3_000) as trace:
        for _ in range(30):
            trace.step("tool_result", output="x" * 5_000, padding="y" * 200)
        if fails:
            trace.step("error", err="no")
    assert (tmp_path / "run.jsonl").exists() == kept
    assert bool(list(tmp_path.iterdir())) == kept


def test_retain_in_a_file_with_other_runs_is_refused_with_a_word(tmp_path: Path, capsys: Any) -> None:
    guard.forget()
    with Trace(tmp_path / "run.jsonl", redact=False) as trace:
        trace.step("first")
    with Trace(tmp_path / "run.jsonl", retain="failed", redact=False) as trace:
        trace.step("second")
    assert "first" in kinds(tmp_path / "run.jsonl") and "second" in kinds(tmp_path / "run.jsonl")
    assert "retain" in capsys.readouterr().err


def test_fsync_writes_the_same_lines(tmp_path: Path) -> None:
    for durability in ("auto", "sync", "fsync"):
        with Trace(tmp_path / f"{durability}.jsonl", durability=durability, redact=False) as trace:
            trace.step("work")
        assert kinds(tmp_path / f"{durability}.jsonl") == ["run.start", "work", "run.end"]


def test_kinds_and_fields_that_bear_our_names_are_set_apart(tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl", redact=False) as trace:
        trace.step("run.end", step=5, call="mine", ts="now", own=1)
        trace.step(kind="by keyword")
        trace.step(5)  # type: ignore[arg-type]
    found = events(tmp_path / "run.jsonl")
    assert [event["kind"] for event in found] == ["run.start", "user.run.end", "by keyword", "5", "run.end"]
    assert found[1]["fields"] == {"step": 5, "call": "mine", "ts": "now"} and found[1]["own"] == 1
    assert found[1]["step"] == 2
