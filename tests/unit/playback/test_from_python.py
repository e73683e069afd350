"""reenact.rerun, fork and experiment: agents run again from Python, in real processes, with the scripted provider."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact.errors import NoSuchRun, UsageError
from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, sys, urllib.request
import reenact

tap = reenact.Tap()

def note(name, item):
    with open("world.txt", "a") as world:
        world.write(f"{name} {item}\\n")
    return f"{name}: done"

@tap.tool(effect="read")
def weigh(item):
    return note("weigh", item)

@tap.tool(effect="write")
def ship(item):
    return note("ship", item)

def use_tool(name, item):
    # A refund has no function of its own, so that no recording answers it.
    return {"weigh": weigh, "ship": ship}[name](item) if name != "refund" else note(name, item)

SYSTEM = "Be kind."

def ask(messages):
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in ("weigh", "ship", "refund")]
    body = {"model": "m", "max_tokens": 9, "system": SYSTEM, "messages": messages, "tools": offered}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as found:
        return json.load(found)["content"]

messages = [{"role": "user", "content": "PLAN " + sys.argv[1]}]
while True:
    answer = ask(messages)
    messages.append({"role": "assistant", "content": answer})
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": use_tool(use["name"], **use["input"])}
        for use in uses
    ]
    messages.append({"role": "user", "content": results})
print(answer[0]["text"], flush=True)
sys.exit(7 if "--fail" in sys.argv else 0)
"""


class Shop:
    """A folder with an agent, what its tools did, and what the provider was asked since."""

    def __init__(self, folder: Path, env: dict[str, str], provider: Provider) -> None:
        self.folder = folder
        self.env = env
        self.provider = provider
        self.world = folder / "world.txt"
        (folder / "agent.py").write_text(AGENT)

    def record(self, *tools: str, flags: tuple[str, ...] = ()) -> str:
        """Record a run in which the model asks for these tools, one a turn; returns its file."""
        plan = json.dumps([[[tool, {"item": f"item {number}"}]] for number, tool in enumerate(tools, 1)])
        done = type_in(
            ("run", "--name", "first", "agent.py", plan, *flags), self.folder, self.env, session=True
        )
        assert done.returncode == (7 if flags else 0) and self.ran() == list(tools), done.stderr
        self.forget()
        [path] = (self.folder / ".reenact").glob("*-first-*.jsonl")
        return str(path)

    def forget(self) -> None:
        self.world.unlink(missing_ok=True)
        self._before = len(self.provider.settled())

    def ran(self) -> list[str]:
        lines = self.world.read_text().splitlines() if self.world.exists() else []
        return [line.partition(" ")[0] for line in lines]

    def requests(self) -> list[dict]:
        """The requests that have reached the provider since."""
        return [json.loads(each.body) for each in self.provider.settled()[self._before :]]


@pytest.fixture
def shop(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REENACT")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MODEL_URL", provider.url("plan"))
    return Shop(tmp_path, dict(os.environ), provider)


def test_a_rerun_returns_a_report_and_prints_nothing(shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    path = shop.record("weigh", "ship", flags=("--fail",))
    report = reenact.rerun(path, capture_output=True)
    assert (report.outcome, report.left_recording, report.exit) == ("as recorded", False, 7)
    assert (report.calls_answered, report.tools_run, report.divergences) == (5, (), ())
    assert report.stdout and report.stderr == "" and capfd.readouterr() == ("", "")
    assert (shop.ran(), shop.requests()) == ([], [])
    new = reenact.Recording.load(report.path)
    assert new.run_id == report.run_id and new.start.meta == {"replay_of": report.of}
    assert report.ended.recorded == report.ended.now == "exit 7"
    assert report.as_dict()["answered"] == 5 and report.as_dict()["run"] == report.run_id
    found = reenact.diff(report.path)  # with the run it was made from
    assert (found.left.run, found.right.run, found.verdict) == (report.of, report.run_id, "same")


@pytest.mark.long
def test_the_run_may_be_an_address_and_goes_to_the_chosen_folder(shop: Shop, tmp_path: Path) -> None:
    shop.record("weigh")
    for run in ("@last", "first", reenact.Recording.load(str(next(Path(".reenact").glob("*.jsonl"))))):
        report = reenact.rerun(run, folder=tmp_path / "elsewhere", capture_output=True)
        assert report.outcome == "as recorded" and Path(report.path).parent == tmp_path / "elsewhere"
    assert len(list((tmp_path / "elsewhere").glob("*.jsonl"))) == 3


@pytest.mark.long
def test_a_divergence_is_in_the_report(shop: Shop) -> None:
    path = shop.record("weigh")
    agent = shop.folder / "agent.py"
    agent.write_text(agent.read_text().replace("Be kind.", "Be brief."))
    report = reenact.rerun(path, capture_output=True)
    [divergence] = report.divergences
    assert (report.outcome, report.left_recording, report.calls_answered) == ("diverged", True, 0)
    assert (divergence.code, divergence.path) == ("changed-request", "system")
    assert "Be kind." in divergence.text() and "Diverged" in report.stderr
    rebased = reenact.rerun(path, mode="rebase", capture_output=True)
    assert (rebased.outcome, rebased.exit) == ("doubtful", 0) and rebased.doubts[0].why == "drift"
    assert (shop.ran(), shop.requests()) == ([], [])


def test_tools_that_nothing_answers_are_refused_before_anything_runs(shop: Shop) -> None:
    path = shop.record("weigh", "refund")
    for run in (reenact.rerun, reenact.fork):
        with pytest.raises(UsageError, match=r"they would run again: refund \(1×\)") as refused:
            run(path)
        assert "live_tools=['refund']" in refused.value.hint
    assert (shop.ran(), shop.requests()) == ([], [])
    report = reenact.rerun(path, live_tools=["refund"], capture_output=True)
    assert (report.outcome, report.tools_run, shop.ran()) == ("as recorded", ("refund",), ["refund"])


def test_what_cannot_be_started_raises_with_a_hint(shop: Shop) -> None:
    path = shop.record("weigh")
    with pytest.raises(UsageError, match="there is no script other.py"):
        reenact.rerun(path, ["other.py"])
    with pytest.raises(UsageError, match="mode='lenient'") as refused:
        reenact.rerun(path, mode="lenient")
    assert "keep-going" in refused.value.hint
    for wrong in ({"live_tools": "weigh"}, {"command": "agent.py"}):
        with pytest.raises(UsageError, match="is a list of texts|='"):
            reenact.rerun(path, **wrong)
    with pytest.raises(NoSuchRun):
        reenact.rerun("nobody")
    (shop.folder / "agent.py").unlink()
    for run in (reenact.rerun, reenact.fork):
        with pytest.raises(UsageError, match="any more") as gone:
            run(path)
        assert "command=" in gone.value.hint
    assert shop.requests() == []


def test_a_fork_changes_requests_and_returns_a_report(shop: Shop) -> None:
    path = shop.record("weigh", "weigh")
    report = reenact.fork(path, at="turn:2", changes={"system": "Be brief."}, capture_output=True)
    assert report.is_cut_reached and not report.is_stopped and report.exit == 0
    assert [each["system"] for each in shop.requests()] == ["Be brief.", "Be brief."]
    assert shop.ran() == ["weigh"]  # after the cut; the one before it was answered
    assert (report.live.calls, report.calls_answered) == (2, 2) and report.live.tokens_in > 0
    assert (report.point.world, report.point.of) == ("untouched", report.of)
    again = reenact.Recording.load(report.path)
    assert again.parent_run == report.of and again.start.fork["edits"]["set"][0]["name"] == "system"
    assert report.as_dict()["passed"] is True
    found = reenact.diff(report.path)  # with the run it was made from
    assert (found.left.run, found.right.run) == (report.of, report.run_id)
    assert [(each.cause, each.detail, each.left[0].turn) for each in found.roots] == [
        ("prompt-changed", "system", 2)
    ]


def test_a_fork_asks_nobody_and_stops_at_a_tool_that_writes(shop: Shop) -> None:
    path = shop.record("weigh", "ship")
    report = reenact.fork(path, at="turn:2", capture_output=True)
    assert report.is_stopped and shop.ran() == [] and "ship" in report.halted[0].why
    assert "--live-tools ship" in report.halted[0].hint
    allowed = reenact.fork(path, at="turn:2", live_tools=["ship"], capture_output=True)
    assert not allowed.is_stopped and shop.ran() == ["ship"]
    with pytest.raises(UsageError, match="may have changed the world"):
        reenact.fork(path, at="turn:3")
    stale = reenact.fork(path, at="turn:3", stale_world=True, capture_output=True)
    assert stale.point.world == "stale" and stale.is_cut_reached
    limited = reenact.fork(path, max_calls=1, capture_output=True)
    assert limited.is_stopped and limited.live.calls == 1


@pytest.mark.long
def test_an_experiment_compares_several_samples_with_a_control(shop: Shop) -> None:
    path = shop.record("weigh")
    [report] = reenact.experiment([path], vary={"system": ["Be brief.", "Be long."]}, samples=2, control=True)
    assert list(report.samples) == ["control", "system=Be brief.", "system=Be long."]
    assert {name: verdict.word for name, verdict in report.verdicts.items()} == {
        "system=Be brief.": "unchanged", "system=Be long.": "unchanged",
    }  # fmt: skip
    assert report.is_well and all(len(each) == 2 for each in report.samples.values())
    assert all(
        sample.calls == 2 and sample.ended == "ok" for each in report.samples.values() for sample in each
    )
    assert len({sample.run for each in report.samples.values() for sample in each}) == 6
    assert sorted(each["system"] for each in shop.requests()) == sorted(
        ["Be kind."] * 4 + ["Be brief."] * 4 + ["Be long."] * 4
    )
    [sent] = reenact.experiment(
        [path], at="turn:2", changes={"system": "Be odd."}, one_call=True, expect=["tool:x"]
    )
    assert [sample.calls for sample in sent.samples["edited"]] == [1] and not sent.is_well
    with pytest.raises(UsageError, match="there is no script"):
        reenact.experiment([path], ["gone.py"])


CALLER = """
import os, signal, subprocess, sys, threading
import reenact

seen = []
signal.signal(signal.SIGCHLD, lambda number, frame: seen.append(number))
mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
reports = []

def work():
    reports.append(reenact.rerun(sys.argv[1], capture_output=True))

threads = [threading.Thread(target=work) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert other.poll() is None, "another child was waited for"
other.kill()
assert other.wait() == -signal.SIGKILL
assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
print([report.outcome for report in reports], sys.stdin.readline())
"""


@pytest.mark.long
def test_the_callers_process_is_left_alone(shop: Shop) -> None:
    path = shop.record("weigh")
    done = subprocess.run(
        [sys.executable, "-c", CALLER, path], env=shop.env, input="still here", capture_output=True, text=True
    )
    assert done.stdout == "['as recorded', 'as recorded'] still here\n", done.stderr


def test_an_agent_does_not_outlive_the_program_that_runs_it(shop: Shop) -> None:
    path = shop.record("weigh")
    (shop.folder / "agent.py").write_text(
        "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    )
    code = f"import reenact; reenact.fork({path!r})"
    caller = subprocess.Popen([sys.executable, "-c", code], env=shop.env, stdout=subprocess.PIPE)
    os.kill(int(caller.stdout.readline()), 0)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert caller.stdout.read() == b""  # the agent, which had it, has ended
    caller.stdout.close()
