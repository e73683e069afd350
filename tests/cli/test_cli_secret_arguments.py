"""A secret among the arguments of a program is in no file, and no command is started without it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.forked import type_in

SECRET, OTHERS = "zz9981" + "abcdef", "x7K27" + "qwertz"

AGENT = """
import subprocess, sys
from reenact import Tap

tap = Tap()

@tap.tool
def call(words):
    return len(words)

if "--api-key" in sys.argv:
    tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "go"}]})
    tap.record_model_response({"role": "assistant", "content": "went"})
    subprocess.run([sys.executable, "agent.py", "--token", OTHERS], check=True)
    call(["tool", "--password", OTHERS])
else:
    call(["child"])
with open("done", "a") as file:
    file.write("done ")
""".replace("OTHERS", repr(OTHERS))


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory):
    """Types commands in the folder of an agent that was recorded with a secret argument."""
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env["XDG_STATE_HOME"] = str(folder / "state")

    def here(*words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, folder, env)

    here.folder = folder  # type: ignore[attr-defined]
    assert here("run", "--name", "first", "agent.py", "--api-key", SECRET).returncode == 0
    return here


def test_it_is_not_in_the_files_of_allowed_programs(typed) -> None:
    script = typed.folder / "tool.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    assert typed("run", "./tool.sh", "--api-key", SECRET, "--passphrase", OTHERS).returncode == 0
    kept = [path.read_text() for path in (typed.folder / "state").rglob("*") if path.is_file()]
    assert any(str(script) in text for text in kept)
    assert not any(SECRET in text or OTHERS in text for text in kept)


def test_it_is_in_no_file_neither_ours_nor_a_childs(typed) -> None:
    traces = [path for path in (typed.folder / ".reenact").rglob("*") if path.is_file()]
    written = "".join(path.read_text(errors="replace") for path in traces)
    assert SECRET not in written and OTHERS not in written
    assert '"--api-key","<redacted:' in written  # run.start
    assert '"--token","<redacted:' in written  # proc.start
    assert '"--password","<redacted:' in written  # a tool's arguments


@pytest.mark.parametrize(
    "words", [["replay", "first"], ["fork", "first", "--set", "system=x"], ["test", "first"]]
)
def test_the_command_is_not_started_and_the_argument_named(typed, words: list[str]) -> None:
    before = (typed.folder / "done").read_text()
    result = typed(*words)
    assert result.returncode == 2
    assert "the argument --api-key <redacted:api-key:1> is a secret that was not recorded" in result.stderr
    if words[0] != "test":
        assert f"reenact {words[0]} RUN -- agent.py --api-key …" in result.stderr
    assert (typed.folder / "done").read_text() == before
    assert not Path(typed.folder / "tests").exists()


def test_with_the_argument_named_again_it_is_replayed(typed) -> None:
    result = typed("replay", "--yes", "first", "--", "agent.py", "--api-key", SECRET)
    assert "is a secret" not in result.stderr
    written = "".join(path.read_text() for path in (typed.folder / ".reenact").glob("*.jsonl"))
    assert SECRET not in written


BOLD = """
import os, subprocess
from reenact import Tap

tap = Tap()
tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "go"}]})
tap.record_model_response({"role": "assistant", "content": "went"})
for start in (
    lambda: subprocess.run(["true", "--token", OTHERS], check=True),
    lambda: subprocess.run(("curl", "-V", "-u", "me:" + OTHERS), stdout=subprocess.DEVNULL),
    lambda: subprocess.run("true --password=" + OTHERS, shell=True, check=True),
    lambda: os.system("true --api-key " + OTHERS),
    lambda: os.spawnvp(os.P_WAIT, "true", ["true", os.environ["SOME_TOKEN"]]),
    lambda: open(os.environ["SOME_TOKEN"], "a").close(),
):
    try:
        start()
    except OSError as why:
        print(why)
""".replace("OTHERS", repr(OTHERS))


def test_a_blocked_command_is_printed_without_it(tmp_path: Path) -> None:
    (tmp_path / "bold.py").write_text(BOLD)
    token = "n3vEr" + "Sh0wnAnywhere77"
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"XDG_STATE_HOME": str(tmp_path / "state"), "SOME_TOKEN": token}
    assert type_in(["run", "--name", "bold", "bold.py"], tmp_path, env).returncode == 0
    (tmp_path / token).unlink()
    result = type_in(["replay", "bold"], tmp_path, env)
    printed = result.stdout + result.stderr
    assert printed.count("refused to run") >= 4 and "refused to write" in printed, printed
    assert "true --token <redacted:" in printed and "me:<redacted:" in printed
    assert OTHERS not in printed and token not in printed, printed
    kept = [path.read_text(errors="replace") for path in tmp_path.rglob("*.jsonl")]
    assert not any(OTHERS in text or token in text for text in kept)
