"""The writer callback's contract: in the recording thread, in order, redacted, whole; its failure stays its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from reenact import Tap, Trace
from reenact.capture import guard
from reenact.capture.http.watch import Watch
from reenact.capture.recorder.listeners import CallbackSink, MemorySink, TeeSink
from support.capture_files import events, one


def test_events_come_as_plain_dicts_before_the_call_returns_in_the_recording_thread() -> None:
    received: list[tuple[dict[str, Any], int]] = []
    tap = Tap(writer=lambda event: received.append((event, threading.get_ident())), redact=False)
    assert [event["kind"] for event, _ in received] == ["run.start"]
    call = tap.record_tool_call("search", {"q": "x"})
    assert received[-1][0]["kind"] == "tool.called" and received[-1][0]["call"] == call
    tap.record_tool_result("search", {"a": [1]}, call=call)
    assert received[-1][0]["result"] == {"a": [1]}
    tap.close()
    assert [event["step"] for event, _ in received] == [1, 2, 3, 4]
    assert received[-1][0]["kind"] == "run.end"
    assert {thread for _, thread in received} == {threading.get_ident()}
    assert all(type(event) is dict for event, _ in received)


def test_order_is_kept_within_each_thread() -> None:
    received: list[dict[str, Any]] = []
    threads_of: set[tuple[int, int]] = set()

    def writer(event: dict[str, Any]) -> None:
        received.append(event)
        if "who" in event:
            threads_of.add((event["who"], threading.get_ident()))

    trace = Trace(writer, redact=False)

    def work(who: int) -> None:
        for seq in range(200):
            trace.step("work", who=who, seq=seq)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.close()
    for who in range(4):
        assert [event["seq"] for event in received if event.get("who") == who] == list(range(200))
    assert len(threads_of) == 4, "an event was handed over by another thread than its own"
    assert sorted(event["step"] for event in received) == list(range(1, 803))


def test_secrets_never_reach_the_callback() -> None:
    secret = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT" * 4
    received: list[dict[str, Any]] = []
    with Tap(writer=received.append) as tap:
        tap.record_model_request({"messages": [{"role": "user", "content": f"my key is {secret}"}]})
        tap.record_tool_call("t", {"api_key": secret})
    assert secret not in str(received)
    assert "redacted" in str(received)


def test_requests_come_whole_or_as_written() -> None:
    for deltas in (False, True):
        received: list[dict[str, Any]] = []
        messages = [{"role": "user", "content": "1"}]
        with Tap(writer=received.append, deltas=deltas, redact=False) as tap:
            for turn in range(3):
                tap.record_model_request({"model": "m", "messages": messages})
                messages.append({"role": "user", "content": str(turn)})
        requests = [event for event in received if event["kind"] == "model.request"]
        assert [len(event["body"].get("messages", [])) for event in requests] == (
            [1, 1, 1] if deltas else [1, 2, 3]
        )
        assert ["base" in event for event in requests] == ([False, True, True] if deltas else [False] * 3)


def test_long_values_come_inline_up_to_a_megabyte_then_cut(tmp_path: Path) -> None:
    received: list[dict[str, Any]] = []
    with Tap(tmp_path / "run.jsonl", writer=received.append, redact=False) as tap:
        tap.record_tool_result("t", "x" * 200_000)
        tap.record_tool_result("t", "y" * 2_000_000)
    results = [event["result"] for event in received if event["kind"] == "tool.result"]
    assert results[0] == "x" * 200_000
    assert results[1]["$cut"] == "blob" and results[1]["bytes"] == 2_000_000
    assert [event.get("lossy") for event in received if event["kind"] == "tool.result"] == [None, True]
    in_file = [event["result"] for event in events(tmp_path / "run.jsonl") if event["kind"] == "tool.result"]
    assert [value["bytes"] for value in in_file] == [200_000, 2_000_000]
    assert len(list((tmp_path / "run.blobs").iterdir())) == 2


def test_a_failing_callback_never_reaches_the_agent_and_is_counted(tmp_path: Path, capsys: Any) -> None:
    guard.forget()
    calls = 0

    def broken(event: dict[str, Any]) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("callback broke")

    with Tap(tmp_path / "run.jsonl", writer=broken, redact=False) as tap:
        for _ in range(10):
            tap.record_tool_call("t", {})
        assert tap.lost == 11
    assert calls == 12
    assert capsys.readouterr().err.count("callback broke") == 1
    assert one(tmp_path / "run.jsonl", "run.end")["dropped"] == 11
    assert len(events(tmp_path / "run.jsonl")) == 12, "the file has them all"


def test_a_callback_that_records_does_not_hear_itself(tmp_path: Path) -> None:
    received: list[str] = []

    def writer(event: dict[str, Any]) -> None:
        received.append(event["kind"])
        trace.step("from-callback")
        trace.step("from-callback")

    trace = Trace(tmp_path / "run.jsonl", redact=False)
    trace.recorder().listeners = (CallbackSink(writer),)
    trace.step("work")
    assert received == ["work"]
    assert [event["kind"] for event in events(tmp_path / "run.jsonl")] == [
        "run.start",
        "work",
        "from-callback",
        "from-callback",
    ]
    trace.recorder().listeners = ()
    trace.close()


def test_a_callback_may_wait_for_another_thread_that_records(tmp_path: Path) -> None:
    """No lock of ours is held while the agent's own code runs."""

    def writer(event: dict[str, Any]) -> None:
        if event["kind"] in ("model.request", "work"):
            other = threading.Thread(target=lambda: tap.record_tool_call("other", {}))
            other.start()
            other.join(60)
            assert not other.is_alive()

    tap = Tap(tmp_path / "run.jsonl", writer=writer, redact=False)
    tap.record_model_request({"messages": [{"role": "user", "content": "1"}]})
    Trace(tap.recorder()).step("work")
    tap.close()
    assert one(tmp_path / "run.jsonl", "run.end")["dropped"] == 0
    assert len([event for event in events(tmp_path / "run.jsonl") if event["kind"] == "tool.called"]) == 2


def test_a_tee_feeds_a_file_and_others(tmp_path: Path) -> None:
    memory = MemorySink(limit=3)
    received: list[str] = []
    with Trace(
        TeeSink(tmp_path / "run.jsonl", memory, lambda event: received.append(event["kind"])), redact=False
    ) as trace:
        for _ in range(5):
            trace.step("work")
    assert received == ["run.start", *["work"] * 5, "run.end"]
    assert [event["kind"] for event in memory.events] == ["work", "work", "run.end"]
    assert len(events(tmp_path / "run.jsonl")) == 7


def test_a_listener_hears_of_a_request_while_other_threads_can_record(tmp_path):
    could_record = []

    def listen(event):
        if event["kind"] == "model.request":
            other = threading.Thread(target=tap.record_tool_call, args=("dig", {}), daemon=True)
            other.start()
            other.join(10)
            could_record.append(not other.is_alive())

    with Tap(TeeSink(tmp_path / "run.jsonl", listen)) as tap:
        body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
        url = "https://api.openai.com/v1/chat/completions"
        assert Watch(tap.recorder).begin("POST", url, [], body) is not None
        tap.record_model_request({"model": "m", "messages": []})
    assert could_record == [True, True]
