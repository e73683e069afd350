"""reenact test: recorded runs become tests that pass, offline, and fail for the right reason."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any

import pytest

from reenact.cli.main import main
from support.forked import do_pytest
from support.provider import Provider

AGENT = Path(__file__).with_name("agent_for_tests.py")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Path:
    """A folder with an agent and the runs of one start of it."""
    folder = tmp_path_factory.mktemp("agent")
    shutil.copy(AGENT, folder / "trip.py")
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"TOOLS_URL": provider.url("tools-2"), "TEXT_URL": provider.url("text")}
    env |= {"LENGTH_URL": provider.url("length"), "BUSY_URL": provider.url("status-529")}
    run = [sys.executable, "-m", "reenact", "run"]
    started = [
        subprocess.Popen([*run, *words], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
        for words in (["--name", "all", "trip.py", "functions"], ["--name", "script", "trip.py"])
    ]
    printed = [each.communicate()[0].split("\n") for each in started]
    assert printed[0][:3] == ["JSONDecodeError", "ValueError", "HTTPStatusError"]
    assert [each.returncode for each in started] == [0, 0]
    return folder


@pytest.fixture
def here(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it that one is in; where the provider is, nobody says any more."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    for trace in (tmp_path / ".reenact").glob("*.jsonl"):
        trace.write_text(trace.read_text().replace(f'"{original}', f'"{tmp_path}'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins take longer than the tests
    monkeypatch.setenv("PYTEST_PLUGINS", "reenact.pytest_plugin")
    return tmp_path


def written(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    """What a command says as JSON."""
    assert main(["test", "--json", "--yes", *words]) == code, capsys.readouterr()
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that cannot do it."""
    assert main(["test", "--yes", *words]) == 2
    reported = capsys.readouterr().err
    assert "Traceback" not in reported and "hint:" in reported
    return reported


def pytested(*words: str, **env: str) -> str:
    """What pytest says of tests; no folder is on the path that they do not put there."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("REENACT", "PYTEST_XDIST"))
    }
    words = ("-q", "-rA", "-p", "no:cacheprovider", *words)
    return do_pytest([*words], os.getcwd(), {**kept, **env}).stdout.decode()


@pytest.mark.long
def test_all_runs_of_a_folder_become_one_file_that_passes(
    here: Path, capsys: Any, provider: Provider
) -> None:
    before = len(provider.settled())
    reported = written(capsys, ".reenact", "--kind", "code", "-o", "tests/test_trip.py")
    assert reported["passes"] and "2 passed, 3 xfailed" in reported["verdict"], reported
    blamed = {each["name"]: each["blame"] and each["blame"]["who"] for each in reported["tests"]}
    assert blamed == {
        "test_script": None,
        "test_plan": None,
        "test_priced": "code",
        "test_cut": "model",
        "test_busy": "provider",
    }
    same = f"plan {_id(here, 'Oslo')} would make the same test as {_id(here, 'Rome')}"
    inside = "all did everything in runs inside it, which get tests of their own"
    assert reported["left_out"] == [inside, same]
    text = (here / "tests/test_trip.py").read_text()
    assert 'result = plan(city="Rome")\n    assert result == "Lisbon has seven hills."' in text
    assert 'asyncio.run(priced(city="Rome"))' in text and "raises=JSONDecodeError" in text
    assert "from httpx import HTTPStatusError" in text and "raises=HTTPStatusError" in text
    assert len(provider.settled()) == before
    for path in reported["paths"]:
        made = (here / path).read_text()
        assert str(here) not in made and os.uname().nodename not in made

    # Other ids, as another SDK or provider makes them, are no other run; another prompt is, and no expected failure.
    code = (here / "trip.py").read_text().replace("What does", "How much is")
    code = code.replace('.json()["content"]', '.json(object_hook=other_ids)["content"]')
    code += "\n\ndef other_ids(made):\n    return {**made, **({'id': made['id'] + 'x'} if 'id' in made else {})}\n"
    (here / "trip.py").write_text(code)
    output = pytested("tests/test_trip.py", "-k", "plan or priced")
    assert "PASSED tests/test_trip.py::test_plan" in output
    assert "FAILED tests/test_trip.py::test_priced - " in output and "changed-request" in output


def _id(folder: Path, city: str) -> str:
    """The first digits of the run in which a city was planned."""
    heads = (path.read_text().partition("\n")[0] for path in (folder / ".reenact").glob("*plan*.jsonl"))
    return next(json.loads(head)["run"][:8] for head in heads if city in head)


@pytest.mark.long
def test_tools_prompts_and_programs(here: Path, capsys: Any, provider: Provider) -> None:
    plan = _id(here, "Rome")
    written(capsys, plan, "--kind", "tool", "--no-check", "-o", "tests/test_tools.py")
    reported = written(capsys, "cut", "--no-check", "--samples", "2", "-o", "tests/test_prompt.py")
    assert reported["tests"][0]["kind"] == "prompt" and "token limit" in reported["tests"][0]["blame"]["why"]
    reported = written(capsys, "script", "--no-check", "-o", "tests/test_script.py")
    text = (here / "tests/test_script.py").read_text()
    assert 'replay_command(trace, ["trip.py"], cwd=HERE / "..")' in text
    reported = written(capsys, "script", "--kind", "prompt", "--samples", "1", "-o", "tests/test_sampled.py")
    assert "1 skipped" in reported["verdict"]
    output = pytested("tests")
    assert "2 passed, 2 skipped" in output, output

    (here / "trip.py").write_text((here / "trip.py").read_text().replace('"height": 75', '"height": "75 m"'))
    output = pytested("tests/test_tools.py")
    assert 'lookup({"question": "How high is hill 1?"}).height: was int, is str' in output, output

    live = ("tests/test_prompt.py", "--reenact=live")
    env = {"LENGTH_URL": provider.url("length"), "TEXT_URL": provider.url("text")}
    assert "0 of 2 runs passed, 1 required" in pytested(*live, **env)
    mended = (here / "trip.py").read_text().replace("raise ValueError(f", "return (f")
    (here / "trip.py").write_text(mended)
    before = len(provider.settled())
    output = pytested("tests/test_prompt.py", "tests/test_sampled.py", "--reenact=live", **env)
    assert "2 passed" in output, output
    assert len(provider.settled()) == before + 3
    output = pytested("tests/test_sampled.py", "--reenact=live", TEXT_URL=provider.url("status-401"))
    assert "0 of 1 runs passed, 1 required" in output, output


SHOP = """
import json, os, urllib.request
import reenact

@reenact.Tap().tool
def weigh(item):
    return {"kilos": 75}

body = {"model": "m", "max_tokens": 9, "tools": [{"name": "weigh", "input_schema": {"type": "object"}}]}
body["messages"] = [{"role": "user", "content": 'PLAN [[["weigh", {"item": "anvil"}]]]'}]
while True:
    url = os.environ.get("PLAN_URL", "https://api.anthropic.com") + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    content = json.load(urllib.request.urlopen(request))["content"]
    uses = [block for block in content if block["type"] == "tool_use"]
    if not uses:
        break
    results = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": str(weigh(**use["input"]))} for use in uses
    ]
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
"""


@pytest.mark.long
def test_decorated_tools_of_a_program_run_in_a_test_of_tools(
    tmp_path: Path, capsys: Any, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "reenact.pytest_plugin")
    (tmp_path / "shop.py").write_text(SHOP)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"PLAN_URL": provider.url("plan")}
    subprocess.run(
        [sys.executable, "-m", "reenact", "run", "shop.py"], env=env, check=True, capture_output=True
    )
    reported = written(capsys, "shop", "--kind", "tool")
    assert reported["passes"], reported
    assert 'live_tools=["weigh"], rebase=True' in (tmp_path / reported["paths"][0]).read_text()
    (tmp_path / "shop.py").write_text(SHOP.replace("75", "'75'"))
    output = pytested(reported["paths"][0])
    assert 'weigh({"item": "anvil"}).kilos: was int, is str' in output, output


@pytest.mark.long
def test_what_was_changed_is_not_written_over(here: Path, capsys: Any) -> None:
    plan = _id(here, "Rome")
    first = [(here / path).read_bytes() for path in written(capsys, plan, "--no-check")["paths"]]
    again = [(here / path).read_bytes() for path in written(capsys, plan, "--no-check")["paths"]]
    assert first == again
    assert "generated from" in refused(capsys, _id(here, "Oslo"), "--no-check")
    test = here / "tests/test_plan.py"
    test.write_text(test.read_text().replace("Rome", "Bonn"))
    assert "was changed since" in refused(capsys, plan, "--no-check")
    assert "Bonn" in test.read_text()
    written(capsys, plan, "--no-check", "--force")
    assert test.read_bytes() == first[0]


def test_run_ids_are_no_code_in_a_generated_test(here: Path, capsys: Any) -> None:
    """An id is 12 characters of code at most there, but some runs in one file make a program."""
    plan = next((here / ".reenact").glob("*plan*.jsonl")).read_text()
    run = json.loads(plan.partition("\n")[0])["run"]
    made = "__import__('os').system('touch executed')"
    pieces = [made[at : at + 4] for at in range(0, len(made), 4)]
    ids = ["\na=''#", *(f"\na+={piece!r}#" for piece in pieces), "\nexec(a)#"]
    ids += ['"""\nimport x', "\r\nopen('x','w')", "\x0ca=1", "\u2028a=1", "\\", "'", "a-b_c.d", "\x1b[2J"]
    (here / "evil").mkdir()
    for number, hostile in enumerate(ids):
        # Runs of one function that go the same way are one test, so each is of another function.
        text = plan.replace(f'"{run}"', json.dumps(hostile)).replace("__main__:plan", f"trip:plan{number}")
        (here / f"evil/{number:02}.jsonl").write_text(text)
    reported = written(capsys, "evil", "--no-check", "-o", "tests/test_evil.py")
    assert sorted(each["run"] for each in reported["tests"]) == sorted(ids)
    source = (here / "tests/test_evil.py").read_text()
    module = ast.parse(source)
    assert {type(node) for node in module.body[1:]} == {
        ast.Import, ast.ImportFrom, ast.Expr, ast.FunctionDef
    }  # fmt: skip
    statements = [ast.unparse(node) for node in module.body[1:] if isinstance(node, ast.Expr)]
    assert statements == ["sys.path.insert(0, str(Path(__file__).parents[1]))"]
    assert all(char.isprintable() or char == "\n" for char in source)
    comments = [
        each.string
        for each in tokenize.generate_tokens(io.StringIO(source).readline)
        if each.type == tokenize.COMMENT
    ]
    assert len(comments) == 2 and comments[0] == "# where the code is"
    digests = ", ".join(["[0-9a-f]{12}"] * len(ids))
    assert re.fullmatch(f"# reenact test: [0-9a-f]{{16}} of {digests}", comments[1]), comments

    assert f"{len(ids)} failed" in pytested("tests/test_evil.py")  # there are no such functions
    assert not list(here.rglob("executed")) and not (here / "x").exists()
    again = written(capsys, "evil", "--no-check", "-o", "tests/test_evil.py")  # known as made from these
    assert again["paths"] == reported["paths"] and (here / "tests/test_evil.py").read_text() == source


def test_a_test_file_stamped_with_the_beginnings_of_run_ids_is_known(here: Path, capsys: Any) -> None:
    run = json.loads(next((here / ".reenact").glob("*plan*.jsonl")).read_text().partition("\n")[0])["run"]
    written(capsys, run, "--no-check")
    test = here / "tests/test_plan.py"
    text = test.read_text()
    test.write_text(re.sub(r" of [0-9a-f]{12}\n\Z", f" of {run[:12]}\n", text))
    assert test.read_text() != text
    written(capsys, run, "--no-check")
    assert test.read_text() == text


def test_what_makes_no_test_is_reported(here: Path, capsys: Any) -> None:
    assert "no run in" in refused(capsys, "nobody")
    (here / "other.jsonl").write_text('{"hello": 1}\n')
    refused(capsys, "other.jsonl")
    bare = "from reenact import Tap\nwith Tap('bare.jsonl') as t:\n    t.record_tool_call('x', {})\n"
    bare += "    t.record_tool_result('x', 1)\n"
    subprocess.run([sys.executable, "-c", bare], check=True)
    assert "--entry module:function" in refused(capsys, "bare.jsonl")
    assert "no recorded input" in refused(capsys, "bare.jsonl", "--entry", "trip:plan")
    (here / "empty").mkdir()
    assert "no run failed" in refused(capsys, "--failed", "empty")
    plan = next((here / ".reenact").glob("*plan*.jsonl")).read_text()
    (here / "killed.jsonl").write_text(plan.replace('"status": "ok"', '"status": "killed"'))
    assert "it was killed" in refused(capsys, "killed.jsonl")
    (here / "odd.jsonl").write_text(plan.replace("__main__:plan", r"os:x\nimport os"))
    assert "cannot be imported" in refused(capsys, "odd.jsonl")
    (here / "cut.jsonl").write_text(plan.replace("Lisbon has", "<redacted:env-value:1> has"))
    assert "--allow-lossy" in refused(capsys, "cut.jsonl", "--no-check")
    assert written(capsys, "cut.jsonl", "--no-check", "--allow-lossy")["passes"] is None


def test_what_would_not_pass_is_not_written(here: Path, capsys: Any) -> None:
    plan = _id(here, "Rome")
    assert "there is no gone in trip any more" in refused(capsys, plan, "--entry", "trip:gone")
    code = (here / "trip.py").read_text()
    (here / "trip.py").write_text("import not_installed\n" + code)
    reported = refused(capsys, plan)
    assert "plan cannot be run again here" in reported and "No module named 'not_installed'" in reported
    reported = refused(capsys, "script", "--kind", "code")
    assert "missing-call" in reported and "No module named 'not_installed'" in reported
    (here / "trip.py").unlink()
    assert "trip.py is not in" in refused(capsys, "script", "--kind", "prompt")
    (here / "trip.py").write_text(code.replace("days in", "nights in"))
    assert "diverges from its recording" in refused(capsys, plan)
    assert not (here / "tests").exists()
    reported = refused(capsys, "script", "--no-check", "-o", "trip.py/tests")
    assert "trip.py/tests/test_script.py cannot be written: Not a directory" in reported


@pytest.mark.long
def test_of_several_runs_those_that_can_be_become_tests(here: Path, capsys: Any) -> None:
    """Another go is the same file again, and a failure leaves it alone."""
    plan = _id(here, "Rome")
    (here / "trip.py").write_text((here / "trip.py").read_text().replace("days in", "nights in"))
    words = (plan, "script", "--kind", "code", "-o", "tests/test_both.py")
    first = written(capsys, *words)
    assert [each["name"] for each in first["tests"]] == ["test_script"]
    assert "diverges from its recording" in first["left_out"][0] and "1 passed" in first["verdict"]
    assert written(capsys, *words)["paths"] == first["paths"]
    before = {path: path.read_bytes() for path in (here / "tests").rglob("*") if path.is_file()}
    assert len(before) == len(first["paths"]) + 1  # a blob of the stream
    (here / "tests/conftest.py").write_text("raise RuntimeError('no tests here')")
    assert "no tests here" in refused(capsys, *words)
    (here / "tests/conftest.py").unlink()
    assert {path: path.read_bytes() for path in (here / "tests").rglob("*") if path.is_file()} == before


def test_secrets_that_stand_in_a_recording_do_not_reach_the_fixture(
    here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTEL_API_KEY", "Oslo-days-secret-9f8e7d")
    path = next(path for path in (here / ".reenact").glob("*plan*") if "in Oslo" in path.read_text())
    path.write_text(path.read_text().replace("Oslo", "Oslo-days-secret-9f8e7d"))
    reported = written(capsys, str(path), "--no-check", "--allow-lossy")
    fixture = here / reported["paths"][1]
    assert "secret" not in fixture.read_text() and "<redacted:" in fixture.read_text()
    assert 'city="<redacted:' in (here / "tests/test_plan.py").read_text()
    assert any("redacted that had not been" in note for note in reported["notes"])
    assert main(["doctor", str(fixture)]) == 0, capsys.readouterr()
