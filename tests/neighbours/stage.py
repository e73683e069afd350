"""Plays an agent beside a neighbour in every way and compares: with its bare self, and with the provider's log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from sdk import offline
from sdk.observe import VOLATILE, VOLATILE_HEADERS
from support.provider import Provider, Received

PROGRAMS = Path(__file__).parent / "programs"
INSIDE = ("bare", "clients first", "install before", "install after", "wrap before", "wrap after")
"""The ways of one process that forks for each; `run` is another process."""
_TAG = re.compile("@(" + "|".join(way.replace(" ", "-") for way in (*INSIDE, "run")) + ")")


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in offline.environment(folder).items() if not name.startswith("REENACT_")
    }
    paths = [str(PROGRAMS), kept.get("PYTHONPATH", "")]
    # botocore names its features in the order of a set.
    return {**kept, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def command(folder: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment's, to its end."""
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, cwd=folder,
        env=environment(folder, **more), timeout=200, stdin=subprocess.DEVNULL,
    )  # fmt: skip


class Stage:
    """What one neighbour and one choice of stations came to, way by way."""

    def __init__(self, side: str, stations: tuple[str, ...], provider: Provider, folder: Path) -> None:
        self._provider = provider
        self.folder = folder
        self.stations = stations
        self.side = side
        provider.reset()
        self.stderr = ""

    def play(self) -> Stage:
        """All ways of one process, and `reenact run`."""
        self.go(",".join(INSIDE), sys.executable)
        self.go("run", sys.executable, "-m", "reenact", "run", "--json", "--out", "run/runs")
        return self

    def go(self, ways: str, *words: str) -> None:
        last = ",".join(self.stations), self._provider.url(), self.folder
        done = command(self.folder, *words, PROGRAMS / "agent.py", self.side, ways, *last)
        assert done.returncode == 0, done.stdout + done.stderr
        self.stderr = done.stderr
        if ways == "run":
            *before, summary = done.stderr.splitlines()
            assert not before, before
            assert json.loads(summary)["unseen"] == [], summary
        else:
            assert not done.stderr, done.stderr

    def report(self, way: str) -> dict[str, Any]:
        """What the agent and the neighbour saw, without what differs from run to run."""
        return json.loads(self._plain((self.folder / way / "told.json").read_text()))

    def received(self, way: str) -> list[Received]:
        tag = f"@{way.replace(' ', '-')}/"
        return [each for each in self._provider.settled() if tag in each.target]

    def sent(self, way: str) -> list[Any]:
        """The requests as the provider got them."""
        return [
            [
                each.method,
                self._plain(each.target),
                self._headers(each),
                self._plain(each.body.decode("latin-1")),
            ]
            for each in self.received(way)
        ]

    def _headers(self, received: Received) -> list[list[str]]:
        hidden = {*VOLATILE_HEADERS, "authorization", "traceparent", "tracestate", "x-amzn-trace-id"}
        return [
            [
                name,
                "<volatile>"
                if name.lower() in hidden or name.startswith("x-datadog-")
                else self._plain(value),
            ]
            for name, value in received.headers
        ]

    def _plain(self, text: str) -> str:
        text = VOLATILE.sub("<volatile>", text.replace(f":{self._provider.port}", ":<port>"))
        return _TAG.sub("", text)

    def recorded(self, way: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Requests and responses of the way's runs, in the order they were made."""
        paths = sorted((self.folder / way / "runs").glob("*.jsonl"))
        lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        assert all(not line.get("dropped") and not line.get("unseen") for line in lines)
        return [
            [line for line in lines if line["kind"] == f"model.{kind}"] for kind in ("request", "response")
        ]  # type: ignore[return-value]

    def counts(self) -> dict[str, int]:
        """How many calls each way has recorded, all of them with a whole answer."""
        found = {}
        for way in (*INSIDE, "run"):
            requests, responses = self.recorded(way)
            assert [(each["status"], each["ended"]) for each in responses] == [(200, "complete")] * len(
                requests
            )
            found[way] = len(requests)
        return found

    def check(self, limits: dict[str, list[str]] | None = None) -> None:
        """All is well in every way but for the limits that are known."""
        found = {way: self.problems(way) for way in (*INSIDE, "run")}
        assert {way: each for way, each in found.items() if each} == (limits or {}), found

    def problems(self, way: str) -> list[str]:
        """What is not as it should be in one way; nothing, if all is well."""
        return self.unlike_bare(way) + self._not_recorded(way)

    def unlike_bare(self, way: str) -> list[str]:
        """What the agent, the neighbour or the provider saw otherwise than without us."""
        bare = "clients first" if way in ("clients first", "wrap before") else "bare"
        reported, alone = self.report(way), self.report(bare)
        found = [f"{name} differs" for name in reported if reported[name] != alone[name]]
        found += reported["not restored"] if way.startswith("install") else []
        sent, alone = self.sent(way), self.sent(bare)
        if sent != alone:
            first = next(
                (pair for pair in zip(sent, alone, strict=False) if pair[0] != pair[1]),
                (len(sent), len(alone)),
            )
            found.append(f"other requests at the provider: {first}")
        return found

    def _not_recorded(self, way: str) -> list[str]:
        requests, responses = self.recorded(way)
        expected = self._to_be_recorded(way)
        answers = {line["call"]: line for line in responses}
        if [_address(line["url"]) for line in requests] != [each.target for each in expected]:
            return [f"{len(requests)} requests recorded of {len(expected)}"]
        found = [f"{len(responses)} answers to {len(requests)} requests"] * (len(responses) != len(requests))
        for line, received in zip(requests, expected, strict=True):
            answer = answers.get(line["call"], {})
            how = answer.get("status"), answer.get("ended"), "raw" in answer
            if how != (200, "complete", len(received.sent) > 2):
                found.append(f"{received.target}: {how}")
        return found

    def _to_be_recorded(self, way: str) -> list[Received]:
        """After the first of two tours we have gone; urllib has nothing that could be wrapped."""
        all_of_them = self.received(way)
        if way == "run":
            return all_of_them
        first = all_of_them[: len(all_of_them) // 2] if way not in ("bare", "clients first") else []
        by = [dict(each.headers) for each in first]
        return [
            each
            for each, headers in zip(first, by, strict=True)
            if way.startswith("install") or not headers.get("User-Agent", "").startswith("Python-urllib/")
        ]


def _address(url: str) -> str:
    return "/" + url.split("/", 3)[3]
