"""``reenact run`` as it is typed: what can be run, options, what it says, and how it lives with the host's set-up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.examples import one_in
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

ASK = (
    POST
    + """
import sys
def ask(url):
    body = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
    return 200 if post(url + "/v1/messages", body)["content"] else 0
"""
)


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REENACT_")}
    return {**kept, **more}


def reenact(folder: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    return type_in(words, folder, environment(**more))


def events(folder: Path) -> list[dict[str, object]]:
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def calls(folder: Path) -> int:
    """How many model calls the runs of a folder hold, in all their files."""
    texts = [path.read_text() for path in folder.glob("*.jsonl")]
    return sum(text.count('"kind": "model.request"') for text in texts)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "asking.py").write_text(ASK)
    (tmp_path / "agent.py").write_text("import sys, asking\nprint(sys.argv[1:], asking.ask(sys.argv[1]))\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "asking.py").write_text(ASK)
    (tmp_path / "pack" / "__main__.py").write_text(
        "import sys, asking\nprint(asking.ask(sys.argv[1]), __name__)\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import os, asking\ndef test_it(): assert asking.ask(os.environ['URL']) == 200\n"
    )
    return tmp_path


def test_a_script_gets_its_arguments_as_they_stand(project: Path, provider: Provider) -> None:
    done = reenact(project, "run", "agent.py", provider.url(), "--name", "not ours", "-m", "--", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[provider.url(), '--name', 'not ours', '-m', '--', '--json']} 200\n"
    head, *_, end = events(project / ".reenact")
    assert head["name"] == "agent" and head["command"][1:3] == ["agent.py", provider.url()]  # type: ignore[index]
    assert end["status"] == "ok"
    assert (project / ".reenact" / ".gitignore").exists()


@pytest.mark.parametrize(
    ("words", "name", "out"),
    one_in(
        2,
        [
            (["-m", "pack"], "pack", "200 __main__\n"),
            (["pack"], "pack", "200 __main__\n"),
            (["-c", "import sys, asking; print(asking.ask(sys.argv[1]))"], "python", "200\n"),
            (["--", "agent.py"], "agent", None),
            ([sys.executable, "agent.py"], os.path.basename(sys.executable), None),
            (["sh", "-c", f"exec {sys.executable} agent.py $0"], "sh", None),
        ],
    ),
    ids=["module", "folder", "code", "after --", "python itself", "shell"],
)
def test_what_can_be_run(
    words: list[str], name: str, out: str | None, project: Path, provider: Provider
) -> None:
    done = reenact(project, "run", *words, provider.url())
    assert done.returncode == 0, done.stderr
    assert out is None or done.stdout == out
    assert done.stderr.count("\n") == 1 and "1 call, 29 tokens" in done.stderr, done.stderr
    assert events(project / ".reenact")[0]["name"] == name
    assert calls(project / ".reenact") == 1


def test_pytest_as_a_console_script(project: Path, provider: Provider) -> None:
    words = ["run", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    few = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take longer to load than the test takes
    done = reenact(project, *words, URL=provider.url(), PATH="/usr/bin:/bin", **few)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stderr.startswith("reenact: ") and calls(project / ".reenact") == 1


def test_name_tags_and_folder(project: Path, provider: Provider) -> None:
    options = ["--name", "trip", "--tag", "env=prod", "--tag=team=a=b", "--out", "kept/here"]
    assert reenact(project, "run", *options, "agent.py", provider.url()).returncode == 0
    head = events(project / "kept" / "here")[0]
    assert (head["name"], head["meta"]) == ("trip", {"env": "prod", "team": "a=b"})
    listed = reenact(project, "ls", "kept/here", "--where", "env=prod", "--json")
    assert json.loads(listed.stdout)["turns"] == 1


@pytest.mark.long
def test_other_traffic_is_recorded_on_request_and_a_named_host_is_a_models(
    project: Path, provider: Provider
) -> None:
    code = "import sys, httpx; httpx.get(sys.argv[1] + '/weather'); httpx.post(sys.argv[1] + '/odd', json={'prompt': 'x'})"
    for options, kinds in (
        ([], set()),
        (["--record-http", "all"], {"http.request"}),
        (["--host", "127.0.0.1"], {"model.request"}),
    ):
        folder = f"out{len(options)}{len(kinds and next(iter(kinds)))}"
        assert reenact(project, "run", "--out", folder, *options, "-c", code, provider.url()).returncode == 0
        found = {str(event["kind"]) for event in events(project / folder)}
        assert found & {"http.request", "model.request"} == kinds


def test_the_summary_for_programs(project: Path, provider: Provider) -> None:
    done = reenact(project, "run", "--json", "agent.py", provider.url())
    reported = json.loads(done.stderr)
    assert (reported["status"], reported["exit"], reported["turns"], reported["unseen"]) == ("ok", 0, 1, [])
    assert reported["tokens"] == {"in": 25, "out": 4} and Path(reported["path"]).exists()
    assert reported["id"] == events(project / ".reenact")[0]["run"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "nothing to run"),
        (["missing.py"], "no script missing.py"),
        (["no-such-program-5d1f"], "no script or program no-such-program-5d1f"),
        (["-m"], "-m of what"),
        (["--tag", "x", "agent.py"], "--tag x is not KEY=VALUE"),
        (["--nonsense", "agent.py"], "--nonsense"),
        (["--name"], "--name"),
    ],
)
def test_what_cannot_be_run_is_reported_and_nothing_is_recorded(
    words: list[str], reported: str, project: Path
) -> None:
    done = reenact(project, "run", *words)
    assert done.returncode == 2 and reported in done.stderr and "hint:" in done.stderr
    assert "Traceback" not in done.stderr and not (project / ".reenact").exists()


@pytest.mark.parametrize(
    "words", [["pack/.."], ["binary"], ["broken.py"], ["-m", "no_such_module_5d1f"], ["-c", "1 +"]]
)
def test_what_python_refuses_is_refused_as_ever(words: list[str], project: Path) -> None:
    (project / "binary").write_bytes(b"\x7fELF\x00\x01\xff")
    (project / "broken.py").write_text("def x(:\n")
    bare = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=project, env=environment()
    )
    done = reenact(project, "run", *words)
    assert bare.returncode == done.returncode == 1
    *printed, ours = done.stderr.splitlines()
    assert printed == bare.stderr.splitlines() and ours.startswith("reenact: ") and "error, 0 calls" in ours
    assert events(project / ".reenact")[-1]["exit"] == 1


def test_a_program_that_the_system_refuses_to_start(project: Path) -> None:
    (project / "broken").write_text("#!/no/such/interpreter\n")
    (project / "broken").chmod(0o755)
    done = reenact(project, "run", "./broken")
    assert done.returncode == 127 and "cannot be started" in done.stderr
    assert events(project / ".reenact")[-1]["exit"] == 127


def test_switched_off_nothing_of_ours_is_there(project: Path, provider: Provider) -> None:
    code = (
        "import sys; print('reenact' in sys.modules, [p for p in sys.path if 'bootstrap' in p]); sys.exit(4)"
    )
    done = reenact(project, "run", "-c", code, REENACT_OFF="1")
    assert (done.returncode, done.stdout, done.stderr) == (4, "False []\n", "")
    assert not (project / ".reenact").exists()


def test_a_seam_can_be_left_out(project: Path, provider: Provider) -> None:
    done = reenact(project, "run", "agent.py", provider.url(), REENACT_SEAMS="-http.client")
    assert done.returncode == 0 and calls(project / ".reenact") == 0


def test_the_hosts_own_sitecustomize_runs_and_sys_path_is_as_ever(project: Path) -> None:
    (project / "site").mkdir()
    (project / "site" / "sitecustomize.py").write_text("import sys\nsys.host_was_here = __file__\n")
    code = "import sys; print(sys.host_was_here, sys.modules['sitecustomize'].__file__, sys.path)"
    where = {"PYTHONPATH": str(project / "site")}
    bare = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, env=environment(**where)
    )
    assert bare.returncode == 0
    assert reenact(project, "run", "-c", code, **where).stdout == bare.stdout


def test_a_failing_sitecustomize_of_the_host_fails_as_ever(project: Path) -> None:
    (project / "site").mkdir()
    (project / "site" / "sitecustomize.py").write_text("raise RuntimeError('on purpose')\n")
    where = {"PYTHONPATH": str(project / "site")}
    bare = subprocess.run(
        [sys.executable, "-c", "0"], capture_output=True, text=True, cwd=project, env=environment(**where)
    )
    done = reenact(project, "run", sys.executable, "-c", "0", **where)
    assert "on purpose" in bare.stderr
    # The supervisor is a Python below that PYTHONPATH, too.
    assert (
        done.stderr.startswith(bare.stderr * 2) and done.stderr.count("\n") == bare.stderr.count("\n") * 2 + 1
    )


def test_a_python_without_reenact_finds_ours(project: Path) -> None:
    code = "import importlib.util; print(importlib.util.find_spec('reenact').origin)"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / "bare"], check=True)
    bare = project / "bare" / "bin" / "python3"
    done = reenact(project, "run", bare, "-c", code)
    assert done.returncode == 0 and done.stdout.endswith("reenact/__init__.py\n"), done.stderr
    assert done.stderr.count("\n") == 1


UNSEEN = {
    "host": ("import socket\ntry: socket.getaddrinfo('api.openai.com', 443)\nexcept OSError: pass", "api.openai.com was contacted"),
    "process": ("import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', '0'])", "began without us"),
    "bare environment": ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', '0'], env={})", "began without us"),
    "sdk": ("import openai", "openai was imported, and no call came of it"),
    "seam": ("import sys, types\nsys.path.insert(0, 'fake')\nimport httpx", "calls made with httpx"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNSEEN)
def test_what_could_not_be_seen_is_reported_and_can_be_an_error(what: str, project: Path) -> None:
    source, reported = UNSEEN[what]
    (project / "fake").mkdir()
    (project / "fake" / "httpx.py").write_text("# an httpx of another time\n")
    (project / "openai.py").write_text("# imported, and no more\n")
    (project / "agent.py").write_text(source)
    done = reenact(project, "run", "--strict-coverage", "agent.py")
    assert done.returncode == 3, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("reenact: not seen: ") and reported in last
    end = events(project / ".reenact")[-1]
    assert end["unseen"] and end["exit"] == 0
    assert reenact(project, "run", "--out", "again", "agent.py").returncode == 0


def test_coverage_says_nothing_where_all_was_seen(project: Path, provider: Provider) -> None:
    words = ["--strict-coverage", "--host", "127.0.0.1", "agent.py", provider.url()]
    done = reenact(project, "run", *words)
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
    assert events(project / ".reenact")[-1]["unseen"] == []


POOL = """
import multiprocessing, sys, openai, httpx, reenact, asking
def work(n):
    WORK
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(2))
        pool.close()
        pool.join()
"""
POOLS = {
    "calls": "asking.ask(sys.argv[1])",
    "calls in runs of their own": "with reenact.run('job'): asking.ask(sys.argv[1])",
    "embeddings in runs of their own": (
        "with reenact.run('job'): httpx.post(sys.argv[1] + '/v1/embeddings', json={'model': 'e', 'input': 'x'})"
    ),
    "embeddings": "httpx.post(sys.argv[1] + '/v1/embeddings', json={'model': 'e', 'input': 'x'})",
}


@pytest.mark.parametrize("work", one_in(2, POOLS, first=1))
def test_calls_of_a_pools_children_are_seen(work: str, project: Path, provider: Provider) -> None:
    (project / "openai.py").write_text("# imported by the parent, used by its children\n")
    (project / "agent.py").write_text(POOL.replace("WORK", POOLS[work]))
    done = reenact(project, "run", "--strict-coverage", "--json", "agent.py", provider.url())
    assert (done.returncode, json.loads(done.stderr)["unseen"]) == (0, []), done.stderr


def test_a_pool_that_calls_nothing_is_seen_to_call_nothing(project: Path, provider: Provider) -> None:
    (project / "openai.py").write_text("# imported by the parent, used by nobody\n")
    (project / "agent.py").write_text(POOL.replace("WORK", "pass"))
    done = reenact(project, "run", "--strict-coverage", "agent.py", provider.url())
    assert done.returncode == 3 and "openai was imported, and no call came of it" in done.stderr


def test_a_failing_agent_keeps_its_code_under_strict_coverage(project: Path) -> None:
    (project / "openai.py").write_text("# imported, and no more\n")
    (project / "agent.py").write_text("import openai, sys\nsys.exit(5)")
    assert reenact(project, "run", "--strict-coverage", "agent.py").returncode == 5


def test_an_agent_does_not_wait_for_what_reads_traces(tmp_path: Path) -> None:
    """Modules of ours that the supervisor loads; the agent itself is no Python here."""
    command = [sys.executable, "-X", "importtime", "-m", "reenact", "run", "true"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert "reenact.supervise.supervisor" in loaded
    rooms = ("recording", "wire", "money", "playback", "tracefile.columns", "tracefile.reader")
    assert not [name for name in loaded if name.startswith(tuple(f"reenact.{room}" for room in rooms))]
    assert "ok, 0 calls" in done.stderr


def test_runs_inside_are_reported_if_there_are_any(tmp_path: Path) -> None:
    inside = "import reenact\nwith reenact.run('inner'):\n    reenact.Trace().step('note')\n"
    (tmp_path / "outer.py").write_text(inside)
    assert "1 run inside: inner" in reenact(tmp_path, "run", "outer.py").stderr
