"""A project of somebody else's whose tests are run by pytest, here in this process, or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anthropic  # noqa: F401  (a session forgets what it has imported: what is there before it, it need not)
import anyio.pytest_plugin  # noqa: F401
import httpcore  # noqa: F401  (httpx loads it late and keeps its errors: a second copy would raise others)
import httpcore2  # noqa: F401
import openai  # noqa: F401
import pytest
import requests  # noqa: F401

import reenact.testing  # noqa: F401
from support.provider import Provider

AGENT = """
import os
import anthropic

client = anthropic.Anthropic(base_url=os.environ["MODEL_URL"], api_key="k", max_retries=0)  # before any test
TOOLS = [{"name": "lookup", "input_schema": {"type": "object"}}]

def ask(text):
    return client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": text}])

def lookup(**question):
    return "42 m"

def agent(text):
    messages = [{"role": "user", "content": text}]
    while True:
        answer = client.messages.create(model="m", max_tokens=9, messages=messages, tools=TOOLS)
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return answer.content[0].text
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": lookup(**use.input)} for use in uses]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
"""
LIGHT = """
import os, requests

session = requests.Session()

def ask(text, **more):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return session.post(os.environ["MODEL_URL"] + "/v1/messages", json=body, **more).json()["content"][0]["text"]
"""
"""The same question with a library that every process can load quickly."""


OFF = (
    "hypothesispytest",
    "langsmith_plugin",
    "respx",
    "platformdirs",
    "timeout",
    "xdist.looponfail",
    "cacheprovider",
)
"""Plugins that have nothing to do with it and take their time."""
QUICK = [word for name in OFF for word in ("-p", f"no:{name}")]
IMPORTED = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
"""By the session of the suite itself, that is."""


class Project:
    """Its files, and what came of its last session."""

    def __init__(self, pytester: pytest.Pytester, patch: pytest.MonkeyPatch, provider: Provider) -> None:
        self.folder = pytester.path
        self._pytester = pytester
        self._patch = patch
        self._provider = provider
        self.called = 0
        """How often the provider was asked in the last session."""
        self.printed = ""

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def files(self) -> dict[str, bytes]:
        """Its traces and all that goes with them."""
        found = [
            path for path in self.folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
        ]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def __call__(self, *args: str, **env: str) -> dict[str, int]:
        """Run the tests; returns how many passed, failed and so on."""
        before = len(self._provider.log)
        with self._patch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            result = self._pytester.runpytest_inprocess(*QUICK, "-p", "no:xdist", *args, *IMPORTED)
        self.called = len(self._provider.log) - before
        self.printed = result.stdout.str() + result.stderr.str()
        self.exit = int(result.ret)
        return dict(result.parseoutcomes()) if self.exit < 2 else {}

    def apart(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        before = len(self._provider.log)
        made = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **env}
        done = subprocess.run(command, cwd=self.folder, env=made, capture_output=True, text=True, timeout=120)
        self.called = len(self._provider.log) - before
        return done
