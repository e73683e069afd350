"""``reenact.install()``: calls go to the run they are made in, and everything can be undone."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import reenact
from reenact.capture.runs import current
from reenact.capture.runs.location import notebook_name
from reenact.supervise.supervisor import oom_kills
from support.provider import Provider

BODY = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("REENACT_DIR", str(tmp_path / "runs"))
    monkeypatch.setattr(current, "_process_run", None)
    yield
    reenact.uninstall()
    if current._process_run is not None:
        current._process_run.close()


def ask(url: str, **more: Any) -> int:
    return httpx.post(url + "/v1/messages", json={**BODY, **more}).status_code


def runs(tmp_path: Path) -> list[list[dict[str, Any]]]:
    files = sorted((tmp_path / "runs").glob("*.jsonl"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def kinds(run: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in run if not event["kind"].startswith("run.")]


def test_each_block_is_a_run_and_the_rest_goes_to_the_process(tmp_path: Path, provider: Provider) -> None:
    reenact.install()
    ask(provider.url())
    with reenact.run("one"):
        ask(provider.url())
        ask(provider.url())
    thread = threading.Thread(target=ask, args=(provider.url(),))
    thread.start()
    thread.join()
    found = {run[0].get("name"): kinds(run) for run in runs(tmp_path)}
    pair = ["model.request", "model.response"]
    assert found == {None: pair * 2, "one": pair * 2}
    ended = next(run[-1] for run in runs(tmp_path) if run[0].get("name") == "one")
    assert ended["unseen"] == []


def test_twice_is_once_and_uninstall_gives_everything_back(tmp_path: Path, provider: Provider) -> None:
    before = (httpx.Client._transport_for_url, httpx.AsyncClient._transport_for_url, list(sys.meta_path))
    reenact.install()
    reenact.install()
    with reenact.run("one"):
        ask(provider.url())
    reenact.uninstall()
    reenact.uninstall()
    after = (httpx.Client._transport_for_url, httpx.AsyncClient._transport_for_url, list(sys.meta_path))
    assert after == before
    with reenact.run("two"):
        ask(provider.url())
    one, two = sorted(runs(tmp_path), key=lambda run: run[0]["name"])
    assert kinds(one) == ["model.request", "model.response"] and kinds(two) == []
    assert "unseen" in one[-1] and "unseen" not in two[-1]
    reenact.install()
    with reenact.run("three"):
        ask(provider.url())
    assert any(kinds(run) for run in runs(tmp_path) if run[0]["name"] == "three"), "and again"


def test_switched_off_it_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_OFF", "1")
    before = httpx.Client._transport_for_url
    reenact.install()
    assert httpx.Client._transport_for_url is before


@pytest.mark.parametrize(
    "arguments", [{"hosts": "one.example"}, {"hosts": [""]}, {"hosts": [1]}, {"record_http": "some"}]
)
def test_a_wrong_argument_is_reported(arguments: dict[str, Any]) -> None:
    with pytest.raises(reenact.UsageError) as raised:
        reenact.install(**arguments)
    assert raised.value.__notes__ == [f"hint: {raised.value.hint}"]  # a traceback shows it


def test_other_hosts_and_other_traffic_on_request(tmp_path: Path, provider: Provider) -> None:
    reenact.install(hosts=["127.0.0.1"], record_http="all")
    with reenact.run("one"):
        httpx.post(provider.url(path="/odd"), json={"prompt": "x"})
        httpx.get(provider.url(path="/weather"))
    (run,) = runs(tmp_path)
    assert [kind for kind in kinds(run) if kind.endswith("request")] == ["model.request", "http.request"]


def test_a_client_that_is_wrapped_as_well_is_recorded_once(tmp_path: Path, provider: Provider) -> None:
    reenact.install()
    with reenact.run("one"), httpx.Client() as client:
        reenact.Tap().wrap(client)
        client.post(provider.url(path="/v1/messages"), json=BODY)
    (run,) = runs(tmp_path)
    assert kinds(run) == ["model.request", "model.response"]


def test_waiting_for_libraries_loads_next_to_nothing() -> None:
    bootstrap = Path(reenact.__file__).parent / "supervise" / "bootstrap"
    code = "import sys; print(*sorted(name for name in sys.modules if name.split('.')[0] in ('reenact', 're', 'json', 'typing')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(bootstrap)},
        capture_output=True,
        text=True,
        check=True,
    )
    ours = set(done.stdout.split())
    assert {"reenact.capture.seams.install", "reenact.capture.seams.libraries"} <= ours
    assert not ours & {
        "re",
        "json",
        "typing",
        "reenact.capture.http.exchange",
        "reenact.capture.recorder.recorder",
        "reenact.wire",
    }
    assert len(ours) <= 17, ours  # five of them are the one-line files of folders


class Shell:
    """The part of IPython's shell an extension is given."""

    def __init__(self) -> None:
        self.callbacks: list[Any] = []
        self.events = SimpleNamespace(
            register=lambda event, call: self.callbacks.append((event, call)),
            unregister=lambda event, call: self.callbacks.remove((event, call)),
        )

    def ends(self, number: int, exc: BaseException | None) -> None:
        for event, call in self.callbacks:
            assert event == "post_run_cell"
            call(SimpleNamespace(error_before_exec=None, error_in_exec=exc, execution_count=number))


def test_a_notebook_records_calls_and_the_errors_of_cells(tmp_path: Path, provider: Provider) -> None:
    shell = Shell()
    reenact.load_ipython_extension(shell)  # type: ignore[attr-defined]
    ask(provider.url())
    shell.ends(1, None)
    shell.ends(2, ZeroDivisionError("on purpose"))
    reenact.unload_ipython_extension(shell)  # type: ignore[attr-defined]
    assert shell.callbacks == []
    ask(provider.url())
    (run,) = runs(tmp_path)
    assert kinds(run) == ["model.request", "model.response", "error"]
    assert (run[-1]["where"], run[-1]["cell"], run[-1]["error"]["type"]) == ("cell", 2, "ZeroDivisionError")


@pytest.mark.parametrize(
    ("names", "variable", "name"),
    [
        ({"__vsc_ipynb_file__": "/home/ada/trip.ipynb"}, "", "trip"),
        ({"__session__": "/home/ada/my trip.ipynb"}, "", "my trip"),
        ({}, "work/budget.ipynb", "budget"),
        ({"__session__": "console-1"}, "console-1", None),
        ({"__session__": 7}, "", None),
    ],
)
def test_the_run_of_a_kernel_has_the_name_of_its_notebook(
    names: dict[str, Any], variable: str, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", variable)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(user_ns=names))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert notebook_name() is None  # a program that a notebook started
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    assert notebook_name() == name


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("0::/app", "app/memory.events", "low 0\noom 2\noom_kill 3\n"),
        ("0::/elsewhere", "memory.events", "oom 2\noom_kill 3\n"),
        ("4:cpu:/x\n5:memory:/app", "memory/app/memory.oom_control", "under_oom 0\noom_kill 3\n"),
        ("5:memory:/elsewhere", "memory/memory.oom_control", "oom_kill 3\n"),
    ],
    ids=["version 2", "version 2 in a container", "version 1", "version 1 in a container"],
)
def test_processes_killed_for_memory_are_counted(line: str, file: str, text: str, tmp_path: Path) -> None:
    own, reported = tmp_path / "own", tmp_path / "mounted" / file
    own.write_text(line + "\n")
    reported.parent.mkdir(parents=True)
    reported.write_text(text)
    assert oom_kills(str(tmp_path / "mounted"), str(own)) == 3
    reported.write_text("nothing of the kind\n")
    assert oom_kills(str(tmp_path / "mounted"), str(own)) is None
    assert oom_kills(str(tmp_path / "mounted"), str(tmp_path / "missing")) is None
