"""reenact replay of what was no program: functions, and requests to a web application."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reenact import Recording
from reenact.errors import UsageError
from reenact.playback.replay.entry import Entry, call_of
from reenact.playback.replay.web_app import call_asgi
from support.entries import PLANNER, RECORD, SHOP
from support.examples import one_in
from support.forked import type_in
from support.provider import Provider


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> tuple[Path, dict[str, str]]:
    """The code, and the recordings of one process that has called all of it."""
    folder = tmp_path_factory.mktemp("entries")
    for name, text in (("planner", PLANNER), ("shop", SHOP), ("record", RECORD)):
        (folder / f"{name}.py").write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url(), "ANTHROPIC_API_KEY": "k"}
    done = typed(folder, env, "run", "record.py")
    assert done.returncode == 0, done.stderr
    return folder, env


def typed(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return type_in(words, folder, env)


@pytest.fixture
def here(original, tmp_path: Path):
    """Types commands in a copy of the folder, in which the recordings name that copy: nothing was run there."""
    folder, env = original
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / ".reenact").glob("*.jsonl"):
        path.write_text(path.read_text().replace(str(folder), str(tmp_path)))
    return lambda *words: typed(tmp_path, env, *words, "--yes")


def run_of(folder: Path, name: str, text: str = "") -> str:
    return next(
        str(path)
        for path in sorted((folder / ".reenact").glob(f"*-{name}-*.jsonl"))
        if text in path.read_text()
    )


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (folder / ".reenact").rglob("*") if path.is_file()}


def test_a_function_is_called_again_with_values_of_its_own_types(
    here, tmp_path: Path, provider: Provider
) -> None:
    before, calls = bytes_of(tmp_path), len(provider.settled())
    again = here("replay", run_of(tmp_path, "plan", '"rest"'))
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == {
        "said": "Lisbon has seven hills.", "day": "2026-01-02", "stops": "('a', 'b')", "key": 5, "cost": 20,
        "pair": "(3, ['a', 'b'])", "more": [7, 8], "rest": {"x": 9},
    }  # fmt: skip
    assert (
        "running planner:plan in" in again.stderr and "replayed as recorded: 3 calls answered" in again.stderr
    )
    assert len(provider.settled()) == calls
    now = bytes_of(tmp_path)
    assert {name: now[name] for name in before} == before, "a replay touches nothing of a recording"
    (made,) = [name for name in now if name not in before]  # the function's own run is the replay's
    start = Recording.load(made).start.stored_fields
    assert start["entry"] == "planner:plan" and start["input"]["more"] == [7, 8]
    assert json.loads(here("replay", made, "--json").stderr.splitlines()[-1])["answered"] == 3


def test_a_failure_is_the_same_again_and_its_mending_is_reported(here, tmp_path: Path) -> None:
    failed = run_of(tmp_path, "plan", '"strict":true')
    again = here("replay", failed)
    assert again.returncode == 1 and "LookupError: no room in Porto" in again.stderr
    assert again.stderr.strip().endswith("replayed as recorded: 3 calls answered, 0 live")
    planner = tmp_path / "planner.py"
    planner.write_text(planner.read_text().replace("raise LookupError", "print"))
    mended = here("replay", failed, "--json")
    assert mended.returncode == 0 and mended.stdout.startswith("no room in Porto\n")
    reported = json.loads(mended.stderr.splitlines()[-1])
    assert reported["ended"] == {"recorded": "LookupError", "now": "ok"} and not reported["diverged"]


@pytest.mark.parametrize(
    ("name", "printed"),
    one_in(2, [("later", '"Lisbon has seven hills."'), ("words", '["Lisbon","has","seven","hills."]'), ("of-class", '"Agent 4"'),
     ("in_the_script", "in the script 1\n2")]),
)  # fmt: skip
def test_every_kind_of_function(name: str, printed: str, here, tmp_path: Path) -> None:
    again = here("replay", run_of(tmp_path, name))
    assert (again.stdout, again.returncode) == (printed + "\n", 0), again.stderr
    assert "replayed as recorded" in again.stderr


@pytest.mark.long
def test_a_request_is_handled_again_and_its_mending_is_reported(
    here, tmp_path: Path, provider: Provider
) -> None:
    before, calls = bytes_of(tmp_path), len(provider.settled())
    failed = run_of(tmp_path, "POST--orders--customer-", '"count":0')
    again = here("replay", failed)
    assert again.returncode == 1 and "ZeroDivisionError" in again.stderr
    assert (
        "answered 500, as recorded" in again.stderr
        and "replayed as recorded: 1 call answered" in again.stderr
    )
    shop = tmp_path / "shop.py"
    shop.write_text(shop.read_text().replace("100 / order.count", "order.count and 100 / order.count"))
    mended = here("replay", failed)
    assert (mended.returncode, json.loads(mended.stdout)["each"]) == (0, 0)
    assert "ended differently (now answered 200, recorded answered 500)" in mended.stderr
    assert len(provider.settled()) == calls
    assert {name: bytes_of(tmp_path)[name] for name in before} == before


@pytest.mark.long
def test_what_of_a_request_was_not_recorded_is_reported(here, tmp_path: Path) -> None:
    fine = here("replay", run_of(tmp_path, "POST--orders--customer-", '"count":2'))
    assert json.loads(fine.stdout) == {"each": 50.0, "said": "Lisbon has seven hills."}
    assert "input that is not exactly as recorded: header authorization" in fine.stderr
    form = here("replay", run_of(tmp_path, "POST--form"))
    assert form.returncode == 0 and "not exactly as recorded: file a.png" in form.stderr


@pytest.mark.long
def test_an_input_that_is_not_whole_is_reported(here, tmp_path: Path) -> None:
    again = here("replay", run_of(tmp_path, "secretly"))
    assert again.stdout == '"<object object "\n'
    assert (
        "input that is not exactly as recorded: secrets in it, holds an object that is not JSON"
        in again.stderr
    )


def test_what_cannot_be_called_ends_with_a_hint(here, tmp_path: Path) -> None:
    done = here("replay", run_of(tmp_path, "method"))
    assert done.returncode == 2 and "Traceback" not in done.stderr and "hint: " in done.stderr
    assert "Agent.act is a method, and its object is not recorded" in done.stderr
    made_inside = here("replay", run_of(tmp_path, "inner"))
    assert made_inside.returncode == 2 and "a function inside another function" in made_inside.stderr


@pytest.mark.parametrize(
    ("code", "entry", "arguments", "reported"),
    [
        ("def f(town): ...", "f", {"city": 1}, "f has no parameter 'city' any more; it takes town"),
        ("def f(a, b): ...", "f", {"a": 1}, "f cannot be called with the recorded input: missing a required argument: 'b'"),
        ("import not_there", "f", {}, "cannot be imported: ModuleNotFoundError: No module named 'not_there'"),
        ("1 / 0", "f", {}, ":1 in <module>: ZeroDivisionError: division by zero"),
        ("", "f", {}, "there is no f in"), ("f = 3", "f", {}, "f is not a function any more but a int"),
        ("def f(): ...", "f", None, "the recorded input of f is not its arguments"),
        ("f = lambda: 1", "<lambda>", {}, "is a lambda"), ("", "", {}, "names no function"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_reported(
    code: str, entry: str, arguments: object, reported: str, tmp_path: Path
) -> None:
    module = f"module_{abs(hash((code, entry)))}"
    (tmp_path / f"{module}.py").write_text(code)
    with pytest.raises(UsageError) as raised:
        call_of(Entry(f"{module}:{entry}", str(tmp_path), arguments))
    assert reported in str(raised.value) and raised.value.hint
    sys.path.remove(str(tmp_path)) if str(tmp_path) in sys.path else None
    sys.modules.pop(module, None)


def test_an_application_that_does_not_start_is_reported() -> None:
    async def app(scope, receive, send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "Traceback\nOSError: no database"})

    with pytest.raises(UsageError, match="the application does not start: OSError: no database"):
        call_asgi(app, {"url": "/"})


@pytest.mark.long
def test_a_file_of_the_agent_s_own_is_not_written_to(original, tmp_path: Path) -> None:
    """What a Tap with a path recorded is replayed, and the agent's Tap writes beside the replay."""
    _, env = original
    (tmp_path / "agent.py").write_text(
        "import os, httpx, reenact\ntap = reenact.Tap('own.jsonl')\n"
        "client = tap.wrap(httpx.Client(base_url=os.environ['MODEL_URL']))\n"
        "body = {'model': 'm', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'hi'}]}\n"
        "print(client.post('/v1/messages', json=body).json()['id'])\n"
        "tap.close()\nos._exit(4)\n"
    )
    first = subprocess.run(
        [sys.executable, "agent.py"], cwd=tmp_path, env=env, capture_output=True, timeout=60
    )
    recorded = (tmp_path / "own.jsonl").read_bytes()
    again = typed(tmp_path, env, "replay", "own.jsonl", "--", "agent.py")
    assert again.stdout.encode() == first.stdout and again.returncode == 4
    assert "1 call answered" in again.stderr  # although it ended without a word
    assert (tmp_path / "own.jsonl").read_bytes() == recorded
    beside = [path.read_bytes() for path in (tmp_path / ".reenact").glob("*-own-replay-*.jsonl")]
    assert sum(b'"kind": "model.response"' in each for each in beside) == 1


def test_an_entry_can_be_called_in_this_process(original, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, env = original
    entry = Entry.of(Recording.load(run_of(folder, "POST--orders--customer-", '"count":2')))
    assert entry is not None and entry.is_app and entry.place == ("shop", "shop")
    for name in ("MODEL_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, env[name])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("REENACT_DIR", str(folder / "none"))
    response = call_of(Entry(entry.entry, str(folder), entry.input))()
    assert response.status == 200 and response.json()["each"] == 50.0 and response.exception is None
    for name in ("shop", "planner"):
        sys.modules.pop(name, None)
