"""reenact fork: an agent run from its recording up to a call, and live from there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from provider import Provider

AGENT = """
import os, sys
import anthropic
from reenact import Tap

tap = Tap()

@tap.tool(effect="read")
def lookup(question):
    with open(os.environ["LOOKED"], "a") as file:
        file.write(question + "\\n")
    return "42"

client = anthropic.Anthropic(base_url=os.environ["MODEL_URL"])
messages = [{"role": "user", "content": "Which city has seven hills?"}]
tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
stream = "--stream" in sys.argv
while True:
    ask = dict(model="m", max_tokens=99, system="Be exact.", messages=messages, tools=tools)
    if stream:
        with client.messages.stream(**ask) as answers:
            answer = answers.get_final_message()
    else:
        answer = client.messages.create(**ask)
    messages.append({"role": "assistant", "content": answer.content})
    uses = [block for block in answer.content if block.type == "tool_use"]
    if not uses:
        break
    results = [
        {"type": "tool_result", "tool_use_id": use.id, "content": lookup(**use.input)} for use in uses
    ]
    messages.append({"role": "user", "content": results})
print(answer.content[0].text, len(messages))
"""
TURNS = 12


class Desk:
    """A folder with a recorded agent, and what the provider was asked since."""

    def __init__(self, folder: Path, env: dict[str, str], provider: Provider) -> None:
        self.folder = folder
        self.env = {**env, "LOOKED": str(folder / "looked")}
        self.provider = provider
        self.before = len(provider.settled())

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "reenact", *words], cwd=self.folder, env={**self.env, **env},
            capture_output=True, text=True, timeout=120, check=False, start_new_session=True,
        )  # fmt: skip
        assert "Traceback" not in done.stderr and "fault of its own" not in done.stderr, done.stderr
        return done

    def fork(self, *words: str, **env: str) -> dict:
        done = self("fork", "first", "--json", *words, **env)
        told = json.loads(done.stderr.splitlines()[-1])
        return {**told, "code": done.returncode, "out": done.stdout}

    def asked(self) -> list[dict]:
        """The bodies of the requests that have reached the provider since."""
        return [json.loads(each.body) for each in self.provider.settled()[self.before :]]

    def looked(self) -> list[str]:
        path = self.folder / "looked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, provider: Provider):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env["REENACT_DEBUG"] = "1"
    env |= {"MODEL_URL": provider.url(f"tools-{TURNS - 1}"), "ANTHROPIC_API_KEY": "k"}
    for name, words in (("first", ()), ("streamed", ("--stream",))):
        done = Desk(folder, env, provider)("run", "--name", name, "agent.py", *words)
        assert done.returncode == 0, done.stderr
    return folder, env


@pytest.fixture
def desk(recorded, tmp_path: Path, provider: Provider) -> Desk:
    folder, env = recorded
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "looked").unlink()
    return Desk(tmp_path, env, provider)


def test_at_each_step_the_provider_sees_the_remaining_requests_and_no_other(desk: Desk) -> None:
    first = next((desk.folder / ".reenact").glob("*-first-*.jsonl"))
    parent = first.read_bytes()
    for turn in range(1, TURNS + 1):
        seen, looked = len(desk.asked()), len(desk.looked())
        told = desk.fork("--at", f"turn:{turn}", "--", "agent.py")
        assert (told["code"], told["out"]) == (0, f"Lisbon has seven hills. {2 * TURNS}\n"), told
        sizes = [len(body["messages"]) for body in desk.asked()[seen:]]
        assert sizes == [2 * each + 1 for each in range(turn - 1, TURNS)]
        assert len(desk.looked()) - looked == TURNS - turn  # those before the cut are answered
        assert told["live"]["calls"] == TURNS - turn + 1
    assert first.read_bytes() == parent


def test_a_changed_prompt_stays_in_force(desk: Desk) -> None:
    (desk.folder / "new.txt").write_text("Be brief.")
    told = desk.fork("--at", "turn:10", "--set", "system=@new.txt", "--set", "model=other", "--", "agent.py")
    assert told["code"] == 0, told
    assert [(body["system"], body["model"]) for body in desk.asked()] == [("Be brief.", "other")] * 3
    once = desk.fork("--at", "turn:10", "--set", "system=Short.", "--once", "--", "agent.py")
    assert once["code"] == 0
    assert [body["system"] for body in desk.asked()[3:]] == ["Short.", "Be exact.", "Be exact."]
    shown = desk("show", once["run"][:12], "--json")
    assert shown.returncode == 0
