"""The benchmarks measure what they say: baselines write as the articles' code does, the workload is fixed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT))
    yield


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_article_trace_writes_ts_run_kind_then_the_fields(tmp_path):
    from benchmarks.baselines.article_trace import ArticleTrace

    trace = ArticleTrace(tmp_path / "new" / "run.jsonl")
    trace.step("tool_call", name="search", args={"q": "é"})
    trace.close()
    text = (tmp_path / "new" / "run.jsonl").read_text()
    (event,) = lines_of(tmp_path / "new" / "run.jsonl")
    assert list(event) == ["ts", "run", "kind", "name", "args"]
    assert '"kind": "tool_call"' in text and "\\u00e9" in text and text.endswith("}\n")
    assert len(event["run"]) == 8 and int(event["run"], 16) >= 0 and isinstance(event["ts"], float)


def test_article_trace_is_on_disk_before_it_is_closed_and_appends(tmp_path):
    from benchmarks.baselines.article_trace import ArticleTrace

    first, second = ArticleTrace(tmp_path / "run.jsonl"), ArticleTrace(tmp_path / "run.jsonl")
    first.step("final", text="one")
    second.step("final", text="two")
    assert [event["text"] for event in lines_of(tmp_path / "run.jsonl")] == ["one", "two"]
    first.close()
    second.close()


def test_article_step_log_puts_run_id_step_and_ts_last_unlike_its_documentation(tmp_path):
    from benchmarks.baselines.article_step_log import ArticleStepLog

    log = ArticleStepLog(tmp_path / "steps.jsonl", "run-abc123")
    log.record_llm_call("m", 1200, 340, "tool_use")
    log.record_tool_call("search", {"query": "Q3"}, output={"results": []}, duration_ms=240)
    llm, tool = lines_of(tmp_path / "steps.jsonl")
    assert list(tool) == ["type", "tool", "input", "output", "error", "duration_ms", "run_id", "step", "ts"]
    assert list(llm) == [
        "type",
        "model",
        "input_tokens",
        "output_tokens",
        "stop_reason",
        "run_id",
        "step",
        "ts",
    ]
    assert (llm["step"], tool["step"], tool["error"], tool["run_id"]) == (1, 2, None, "run-abc123")
    assert len(log.steps) == 2


def test_every_baseline_that_is_installed_takes_an_event_and_the_others_are_named(tmp_path):
    from benchmarks.baselines import HOMES, available

    found, missing = available()
    assert {"article Trace", "article StepLog", "logging + JSON"} <= set(found)
    assert set(found) | {line.split(":")[0] for line in missing} == set(HOMES)
    assert all("not installed" in line for line in missing)
    for name in ("article Trace", "article StepLog", "logging + JSON"):
        recorder = found[name](tmp_path / f"{name}.jsonl")
        recorder.record("note", {"text": "hello"})
        recorder.close()
        assert "hello" in (tmp_path / f"{name}.jsonl").read_text()


def digest(turns: int, **options: object) -> str:
    from benchmarks.workload import agent_run

    sums = hashlib.sha256()
    for step in agent_run(turns, **options):
        sums.update(json.dumps([step.kind, step.conversation, step.fields]).encode())
    return sums.hexdigest()


def test_workload_is_the_same_every_time():
    assert digest(30) == digest(30)
    assert digest(30, samples=None) == "7e0af115b082eac9ee671859922e28413db8ab1eb02147b59591635d91161ab0"
    assert digest(31) != digest(30)


def test_workload_has_two_conversations_tools_moved_markers_and_an_edit():
    from benchmarks.workload import agent_run

    sent: list[tuple[int, list[dict]]] = []
    kinds = set()
    for step in agent_run(40, samples=None):
        kinds.add(step.kind)
        if step.kind == "request":
            sent.append((step.conversation, json.loads(json.dumps(step.fields["body"]["messages"]))))
    assert kinds == {"request", "response", "called", "result"}
    assert {number for number, _ in sent} == {0, 1}
    marked = [[("cache_control" in m["content"][-1]) for m in messages] for _, messages in sent]
    assert all(flags.count(True) == 1 and flags[-1] for flags in marked)
    assert sum('"[cleared]"' in json.dumps(messages) for _, messages in sent) > 10
    assert '"[cleared]"' not in json.dumps(sent[10])


def test_distinct_bytes_count_each_different_message_once_whoever_sends_it():
    from benchmarks.workload import agent_run, distinct, wire_bytes

    seen = {}
    for step in agent_run(40, samples=None):
        body = step.fields.get("body")
        sent = body["messages"] if step.kind == "request" else [body] if step.kind == "response" else []
        for message in sent:
            content = [{k: v for k, v in b.items() if k != "cache_control"} for b in message["content"]]
            bare = {"role": message["role"], "content": content}
            seen[json.dumps(bare)] = wire_bytes(bare)
    assert distinct(agent_run(40, samples=None)).messages == sum(seen.values())


def test_payloads_have_the_requested_size_and_never_the_same_text():
    from benchmarks.workload import PAYLOAD_BYTES, payloads, wire_bytes

    for size in PAYLOAD_BYTES.values():
        for ascii_only in (True, False):
            events = payloads(size, 3, ascii_only=ascii_only)
            assert all(0.8 * size < wire_bytes(event) < 1.1 * size for event in events)
            assert len({json.dumps(event) for event in events}) == 3
            assert json.dumps(events[0], ensure_ascii=False).isascii() == ascii_only


def test_a_figure_is_judged_against_its_budget_in_the_right_direction():
    from benchmarks.harness import Figure

    assert Figure("cost", 0.03, budget=0.02).verdict == "MISSED"
    assert Figure("cost", 0.02, budget=0.02).verdict == "ok"
    assert Figure("speed", 0.6, budget=0.7, better="high").verdict == "MISSED"
    assert Figure("speed", 0.6).verdict == ""
    assert Figure("speed", None, budget=1).verdict == "not measured"


def test_contenders_take_turns_and_another_one_begins_each_round():
    from benchmarks.harness import interleave

    order: list[str] = []
    results = interleave({name: lambda n=name: order.append(n) or n for name in "abc"}, 2)
    assert "".join(order) == "abcbca" and results == {"a": ["a"] * 2, "b": ["b"] * 2, "c": ["c"] * 2}


def test_the_floor_of_a_run_writes_one_line_an_event_and_sees_an_edit_in_place(tmp_path):
    from benchmarks import floors
    from benchmarks.workload import agent_run

    steps = sum(1 for _ in agent_run(40, samples=None))
    floors.agent_run(tmp_path / "run.jsonl", agent_run(40, samples=None), floors.search())
    events = lines_of(tmp_path / "run.jsonl")
    assert [event["step"] for event in events] == list(range(1, steps + 1))
    requests = [event for event in events if event["kind"] == "request"]
    assert "[cleared]" in json.dumps(requests[19:]) and "[cleared]" not in json.dumps(requests[:15])
    messages = [{"role": "user", "content": [{"type": "text", "text": str(n)}]} for n in range(9)]
    floor = floors.Conversation(floors.Writer(tmp_path / "few.jsonl", look=None))
    for sent in (messages, [messages[0], *messages[3:]]):  # a window moves on by two
        floor.request({"messages": sent})
    messages[1]["content"][0]["text"] = "edited"
    floor.request({"messages": messages[:3]})
    floor.writer.close()
    whole, moved, edited = lines_of(tmp_path / "few.jsonl")
    assert (whole["keep"], len(whole["new"])) == (0, 9)
    assert (moved["keep"], len(moved["new"])) == (1, 6) and all("$same" in each for each in moved["new"])
    assert edited["keep"] == 1 and "edited" in json.dumps(edited["new"])


@pytest.mark.parametrize("command", [["ls"], ["stats"], ["grep", "zebra"]])
def test_the_floor_of_a_command_reads_our_files(tmp_path, command):
    from benchmarks.ours import feed_tap
    from benchmarks.workload import agent_run

    feed_tap(tmp_path / "run.jsonl", agent_run(5, samples=None), name="zebra")
    floor = [sys.executable, "-m", "benchmarks.floors", *command, str(tmp_path)]
    done = subprocess.run(floor, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = {"ls": "run.end", "stats": "claude", "grep": '"name": "zebra"'}
    assert expected[command[0]] in done.stdout and "damage" not in done.stdout


def test_a_killed_baseline_keeps_what_it_acknowledged(tmp_path):
    monkeyed = [sys.executable, "-c", "from benchmarks.rows.crash import _trial; import sys, pathlib;"
                "print(*_trial('article Trace', pathlib.Path(sys.argv[1]), 50))", str(tmp_path)]  # fmt: skip
    done = subprocess.run(monkeyed, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    acknowledged, kept = map(int, done.stdout.split())
    assert acknowledged >= 50 and kept == acknowledged


def test_an_unknown_row_is_refused_with_the_list_of_rows():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "event-stdlib" in done.stderr


@pytest.mark.long
def test_a_quick_run_of_two_rows_prints_a_table_and_writes_json(tmp_path):
    out = tmp_path / "bench.json"
    command = [sys.executable, "-m", "benchmarks", "bytes", "startup", "--quick", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text())
    figures = [figure for table in report["tables"] for figure in table["figures"]]
    assert [table["title"].split(":")[0] for table in report["tables"]] == ["bytes", "startup"]
    assert len(figures) >= 10 and all(figure["value"] is not None for figure in figures)
    assert "start → first event" in done.stdout and "budgets met" in done.stdout
