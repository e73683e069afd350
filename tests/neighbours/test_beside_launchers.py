"""Tools that start programs, or are started: pytest, xdist, coverage, multiprocessing, a sitecustomize, IPython."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.posting import POST
from support.provider import Provider

from .stage import command, environment

ASK = (
    POST
    + """
import os, sys
def ask(of="x"):
    body = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
    return 200 if post(f"{os.environ['URL']}/v1/messages?of={of}", body)["content"] else 0
"""
)
RUN = (sys.executable, "-m", "reenact", "run", "--json", "--out", "runs")


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(folder.rglob("*.jsonl")) for line in path.read_text().splitlines()
    ]


def questions(folder: Path) -> list[str]:
    """Which calls the runs of a folder have, by their query."""
    found = [line["url"].partition("of=")[2] for line in lines(folder) if line["kind"] == "model.request"]
    return sorted(found)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "asking.py").write_text(ASK)
    return tmp_path


def both(folder: Path, provider: Provider, *words: str, **more: str) -> tuple[Any, Any]:
    """A program without us, and with us."""
    more = {"URL": provider.url(), **more}
    bare = command(folder, sys.executable, *words, **more)
    ours = command(folder, *RUN, *words, **more)
    assert bare.returncode == ours.returncode == 0, bare.stderr + ours.stderr
    summary = json.loads(ours.stderr.removeprefix(bare.stderr))
    assert summary["unseen"] == [] and summary["status"] == "ok", summary
    return bare, ours


@pytest.mark.long
def test_coverage_measures_the_same(project: Path, provider: Provider) -> None:
    (project / "agent.py").write_text("import asking\nif asking.ask() == 500:\n    print('never')\n")
    bare, ours = both(
        project, provider, "-m", "coverage", "run", "--data-file=measured", "--include=agent.py", "agent.py"
    )
    report = command(project, sys.executable, "-m", "coverage", "report", "-m", "--data-file=measured")
    assert bare.stdout == ours.stdout and "agent.py       3      1    67%   3" in report.stdout, report.stdout
    assert questions(project / "runs") == ["x"]


@pytest.mark.long
def test_pytest_with_xdist(project: Path, provider: Provider) -> None:
    tests = "import asking, pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n): assert asking.ask(n) == 200\n"
    (project / "test_it.py").write_text(tests)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", "-n", "2", "test_it.py"]
    bare, ours = both(project, provider, *words, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "6 passed" in bare.stdout and "6 passed" in ours.stdout
    assert questions(project / "runs") == ["0", "1", "2", "3", "4", "5"]


def test_every_way_to_start_a_process(project: Path, provider: Provider) -> None:
    (project / "agent.py").write_text(
        "import asking, multiprocessing as mp\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "if __name__ == '__main__':\n"
        "    for way in ('fork', 'spawn', 'forkserver'):\n"
        "        with ProcessPoolExecutor(1, mp_context=mp.get_context(way)) as pool:\n"
        "            print(way, list(pool.map(asking.ask, [way])))\n"
    )
    bare, ours = both(project, provider, "agent.py")
    assert bare.stdout == ours.stdout == "fork [200]\nspawn [200]\nforkserver [200]\n"
    assert questions(project / "runs") == ["fork", "forkserver", "spawn"]


@pytest.mark.long
def test_a_sitecustomize_of_the_hosts_own_runs_once(project: Path, provider: Provider) -> None:
    (project / "own").mkdir()
    (project / "own" / "sitecustomize.py").write_text(
        "import sys\nif 'reenact' not in sys.orig_argv:\n    sys.stdout.write('own\\n')\n"
    )
    (project / "agent.py").write_text(
        "import asking, sys, subprocess\nprint(asking.ask(), sys.modules['sitecustomize'].__file__, flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'print(1)'], check=True)\n"
    )
    path = environment(project)["PYTHONPATH"]
    bare, ours = both(project, provider, "agent.py", PYTHONPATH=f"own:{path}")
    assert bare.stdout == ours.stdout and bare.stdout.count("own\n") == 2
    assert questions(project / "runs") == ["x"]


GEVENT = """
from gevent import monkey
monkey.patch_all()
import asking, gevent, os, requests, openai, reenact
client = openai.OpenAI(api_key="none", base_url=os.environ["URL"], max_retries=0)
CHAT = {"model": "gpt-x", "messages": [{"role": "user", "content": "hi"}]}

def one(n):
    with reenact.run(f"green-{n}"):
        answer = asking.ask(f"green-{n}")
        chunks = client.chat.completions.create(**CHAT, stream=True, extra_query={"of": f"green-{n}"})
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        again = requests.post(os.environ["URL"] + "/chat/completions", json=CHAT, params={"of": f"green-{n}"})
        return answer, text, again.status_code

jobs = [gevent.spawn(one, n) for n in range(8)]
gevent.joinall(jobs)
print([job.get() for job in jobs])
print(asking.ask("own"))
"""


@pytest.mark.long
def test_gevent_keeps_greenlets_apart(project: Path, provider: Provider) -> None:
    (project / "agent.py").write_text(GEVENT)
    bare, ours = both(project, provider, "agent.py", URL=provider.url("text,drip-3"))
    assert bare.stdout == ours.stdout
    runs = [path for path in (project / "runs").glob("*.jsonl") if "green" in path.name]
    assert len(runs) == 8
    for path in runs:
        reported = [json.loads(line) for line in path.read_text().splitlines()]
        calls = [line["url"].partition("of=")[2] for line in reported if line["kind"] == "model.request"]
        assert calls == [reported[0]["name"]] * 3
        assert [line["ended"] for line in reported if line["kind"] == "model.response"] == ["complete"] * 3
    assert questions(project / "runs").count("own") == 1
    assert not [line for line in lines(project / "runs") if "who" in line]  # greenlets share a thread


TRIO = """
import asking, httpx, trio, os
async def ask():
    async with httpx.AsyncClient(trust_env=False) as client:
        body = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
        print((await client.post(os.environ["URL"] + "/v1/messages", json=body)).status_code)
async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
trio.run(main)
asking.ask("own")
"""


@pytest.mark.long
def test_tasks_of_trio_are_not_taken_for_their_thread(project: Path, provider: Provider) -> None:
    (project / "agent.py").write_text(TRIO)
    bare, ours = both(project, provider, "agent.py")
    assert bare.stdout == ours.stdout
    requests = [line for line in lines(project / "runs") if line["kind"] == "model.request"]
    assert [line.get("who") for line in requests] == [None, None, "main"]


CELLS = "%load_ext reenact\nimport asking\nasking.ask('cell')\n1/0\nsyntax error\n%unload_ext reenact\nasking.ask('later')\n"


@pytest.mark.long
def test_ipython_records_calls_and_the_errors_of_cells(project: Path, provider: Provider) -> None:
    more = {
        "URL": provider.url(),
        "REENACT_DIR": str(project / "runs"),
        "IPYTHONDIR": str(project / "ipython"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=nocolor", "--simple-prompt"], input=CELLS,
        capture_output=True, text=True, cwd=project, env=environment(project, **more), timeout=200,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.count("200") == 2, done.stdout + done.stderr
    assert "ZeroDivisionError" in done.stdout and "reenact" not in done.stderr
    check_cells(project / "runs")


def check_cells(folder: Path) -> None:
    assert questions(folder) == ["cell"]
    errors = [line for line in lines(folder) if line["kind"] == "error"]
    assert [(line["where"], line["error"]["type"]) for line in errors] == [
        ("cell", "ZeroDivisionError"), ("cell", "SyntaxError"),
    ]  # fmt: skip


KERNEL = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel()
for cell in sys.argv[1].splitlines():
    outputs = []
    client.execute_interactive(cell, timeout=60, output_hook=lambda message: outputs.append(message["content"]))
    print([each.get("ename") or each.get("data", {}).get("text/plain") for each in outputs if each.keys() & {"ename", "data"}])
client.stop_channels()
manager.shutdown_kernel()
"""


def test_a_jupyter_kernel_records_into_a_run_of_the_notebooks_name(project: Path, provider: Provider) -> None:
    places = {
        name: str(project / "ipython") for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")
    }
    more = {"URL": provider.url(), "REENACT_DIR": str(project / "runs"), **places}
    more["JPY_SESSION_NAME"] = str(project / "trip.ipynb")  # as Jupyter's server starts a kernel
    done = command(project, sys.executable, "-c", KERNEL, CELLS, **more)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n[]\n['200']\n['ZeroDivisionError']\n['SyntaxError']\n[]\n['200']\n"
    check_cells(project / "runs")
    (path,) = (project / "runs").glob("*-trip-*.jsonl")
    assert json.loads(path.read_text().splitlines()[0])["name"] == "trip"
