"""reenact replay and what libraries do by themselves: reports and price lists fail as without a network, the agent goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.provider import Provider

LIBRARY = """
import os, socket, threading

def call_home():
    if "REENACT_REPLAY" not in os.environ:
        return  # tests call nobody
    try:
        socket.create_connection(("198.51.100.7", 80), timeout=0.01)
    except OSError:
        return
    raise AssertionError

def report():
    thread = threading.Thread(target=call_home)
    thread.start()
    thread.join()

call_home()
"""
AGENT = """
import os, platform, sys
import chatty, httpx

chatty.report()
platform.processor()
ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Seven hills?"}]}
print(httpx.post(os.environ["MODEL_URL"] + "/v1/messages", json=ask).json()["content"][0]["text"])
if "--home" in sys.argv:
    chatty.call_home()
    print("not reached")
"""


@pytest.mark.long
def test_what_a_library_does_unbidden_fails_and_ends_nothing(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "chatty.py").write_text(LIBRARY)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("text"), "PYTHONPATH": str(library), "PYTHONDONTWRITEBYTECODE": "1"}

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reenact", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
        )

    first = typed("run", "--name", "first", "agent.py")
    assert first.returncode == 0, first.stderr
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert "refused to connect to 198.51.100.7, 2 times" in again.stderr or again.stderr.count("refused") == 2
    assert "Traceback" not in again.stderr and "uname" not in again.stderr
    bidden = typed("replay", "first", "--", "agent.py", "--home")
    assert bidden.returncode == 3
    assert "not reached" not in bidden.stdout
