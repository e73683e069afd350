"""``reenact view`` by real requests: who gets an answer, what is in it, and what bad input gets."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact import Tap
from support.harness import environment, finish, start
from support.runs_to_debug import five_turns, two_agents
from support.served import Served, served


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    five_turns(folder / "five.jsonl")
    two_agents(folder / "two.jsonl", lanes=True)
    (folder / "empty.jsonl").write_text("")
    (folder / "other.jsonl").write_text('{"a": 1}\n')
    return folder


@pytest.fixture(scope="module")
def viewer(folder: Path) -> Iterator[Served]:
    with served(folder / "five.jsonl") as found:
        yield found


def test_the_token_moves_from_the_address_into_a_cookie(viewer: Served) -> None:
    assert viewer.get(viewer.path, cookie=False).status == 403
    assert viewer.get(f"{viewer.path}?token=wrong").status == 403
    assert viewer.get(viewer.path, cookie=False, Cookie=f"reenact-{viewer.port}=wrong").status == 403
    admitted = viewer.get(f"{viewer.path}?q=a+b&token={viewer.token}", cookie=False)
    assert (admitted.status, admitted.getheader("location")) == (303, f"{viewer.path}?q=a+b")
    cookie = admitted.getheader("set-cookie") or ""
    assert viewer.token in cookie and "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert viewer.get(viewer.path).status == 200
    assert len(viewer.token) >= 32


def test_a_token_with_two_slashes_leads_nowhere_else(viewer: Served) -> None:
    admitted = viewer.get(f"//example.com/?token={viewer.token}", cookie=False)
    assert (admitted.getheader("location") or "").startswith("/example.com")


@pytest.mark.parametrize(
    "host", ["example.com", "127.0.0.1.example.com", "", "localhost.example.com:80", "0.0.0.0"]
)
def test_a_foreign_host_is_refused(host: str, viewer: Served) -> None:
    answer = viewer.get(viewer.path, Host=host)
    assert answer.status in (400, 403) and viewer.token not in str(answer.headers)


@pytest.mark.parametrize("host", ["localhost:{}", "LOCALHOST:{}", "[::1]:{}", "127.0.0.1"])
def test_the_names_of_this_machine_are_answered(host: str, viewer: Served) -> None:
    assert viewer.get(viewer.path, Host=host.format(viewer.port)).status == 200


def test_a_foreign_origin_and_a_foreign_page_are_refused(viewer: Served) -> None:
    assert viewer.get(viewer.path, Origin="https://example.com").status == 403
    assert viewer.get(viewer.path, Origin="null").status == 403
    assert viewer.get(viewer.path, Origin=f"http://localhost:{viewer.port}").status == 403
    assert viewer.get(viewer.path, Origin=f"http://127.0.0.1:{viewer.port}").status == 200
    assert viewer.get(viewer.path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert viewer.get(viewer.path, Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors").status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_only_reads(method: str, viewer: Served) -> None:
    assert viewer.get(viewer.path, method).status == 405


def test_every_answer_forbids_scripts_and_requests_elsewhere(viewer: Served) -> None:
    for path in ("/", viewer.path, "/static/viewer.js", "/nothing", f"{viewer.path}/event/999"):
        answer = viewer.get(path)
        policy = answer.getheader("content-security-policy") or ""
        assert "default-src 'none'" in policy and "script-src 'self';" in policy, path
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy and "http" not in policy
        assert answer.getheader("referrer-policy") == "no-referrer"
        assert answer.getheader("x-content-type-options") == "nosniff"
        assert answer.getheader("server") is None
    for path in ("/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/html.py"):
        assert viewer.get(path).status == 404


def test_it_listens_on_the_loopback_interface_only(viewer: Served) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return  # this machine has no other address
        outer = probe.getsockname()[0]
    if outer.startswith("127."):
        return
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(2)
        other.connect((outer, viewer.port))


def test_the_page_of_a_run_opens_at_the_failure_with_its_figures(folder: Path, viewer: Served) -> None:
    page = viewer.get(viewer.path).text
    assert 'data-page="run"' in page and "<script src=" in page and "5</b> turns" in page
    rows = json.loads(viewer.get(f"{viewer.path}/rows?from=0&n=400").text)
    assert rows["total"] == len(rows["rows"]) == rows["events"] == 34 and rows["done"] is True
    assert [at for at, _ in rows["rows"]][:3] == ["2", "3", "4"]


def test_filters_lanes_and_moves(folder: Path, viewer: Served) -> None:
    def rows(query: str) -> dict:
        return json.loads(viewer.get(f"{viewer.path}/rows?from=0&n=400&{query}").text)

    assert rows("show=errors")["total"] == 4
    assert rows("show=model")["total"] == 10
    assert rows("show=tools")["total"] == 24
    assert rows("q=0+RESULTS&show=tools")["total"] == 4
    assert rows("q=search.*")["total"] == 0  # a text, not an expression
    assert rows("q=nowhere")["total"] == 0

    def go(query: str) -> dict:
        return json.loads(viewer.get(f"{viewer.path}/go?{query}").text)

    assert go("at=2&move=turn%2B")["at"] == "10"
    assert go("at=10&move=turn-")["at"] == "2"
    assert go("at=12&move=turn-")["at"] == "2"
    assert "last turn" in go("at=last&move=turn%2B")["note"]
    assert go("at=2&move=lane%2B")["at"] == "3"
    assert "Beginning" in go("at=2&move=lane-")["note"]
    assert go("at=last")["row"] == 33
    assert go("at=3&show=tools")["row"] == 0


def test_an_event_its_context_and_its_copies(viewer: Served) -> None:
    event = viewer.get(f"{viewer.path}/event/3").text
    assert "Response of the model" in event and "turn 0" in event and "Stored line" in event
    tool = viewer.get(f"{viewer.path}/event/5").text
    assert "Arguments" in tool and "Result" in tool
    context = viewer.get(f"{viewer.path}/context/12").text
    assert "role-assistant" in context and "mark new" in context and "Summarize the Q1" in context
    fresh = viewer.get(f"{viewer.path}/context/12?new=1").text
    assert "Summarize the Q1" not in fresh and "mark new" in fresh
    assert json.loads(viewer.get(f"{viewer.path}/copy/3?as=json").text)["kind"] == "model.response"
    command = shlex.split(viewer.get(f"{viewer.path}/copy/3?as=curl").text)
    assert "x-api-key: $API_KEY" in command and json.loads(command[-1])["max_tokens"] == 64
    program = viewer.get(f"{viewer.path}/copy/3?as=python").text
    compile(program, "copied.py", "exec")
    assert 'os.environ["API_KEY"]' in program
    for by in ("duration", "tokens", "money", "nonsense"):
        assert viewer.get(f"{viewer.path}/lanes?by={by}").status == 200
    assert (
        viewer.get(f"{viewer.path}/lanes?by=tokens").text.count('class="bar') == 5 + 1
    )  # and the frame of them


def test_turns_and_runs_are_compared(viewer: Served) -> None:
    turns = viewer.get(f"{viewer.path}/turns?then=1&now=2")
    assert turns.status == 200 and "What the model saw, compared" in turns.text
    key = viewer.path.rpartition("/")[2]
    same = viewer.get(f"/diff?a={key}&b={key}")
    assert same.status == 200 and "Two runs compared" in same.text


def test_the_list_of_runs_is_filtered_and_sorted_in_the_address(viewer: Served) -> None:
    page = viewer.get("/").text
    assert page.count('href="/run/') == 2 and "is not a trace" in page and "the file is empty" in page
    assert 'aria-sort="descending"' in viewer.get("/?sort=tokens").text
    assert 'aria-sort="ascending"' in viewer.get("/?sort=-tokens").text

    def total(query: str) -> int:
        return int(json.loads(viewer.get(f"/runs?from=0&n=9&{query}").text)["total"])

    assert [total("q=five"), total("q=FIVE"), total("status=failed"), total("status=nonsense")] == [
        1,
        1,
        0,
        4,
    ]
    assert [total("q=turns%3D5"), total("q=turns%3E5"), total("q=name~tw+turns%3E1"), total("q=%22%3D")] == [
        1,
        0,
        1,
        0,
    ]
    assert [total("since=1"), total("until=1"), total("since=nonsense"), total("sort=nonsense")] == [
        2,
        2,
        4,
        4,
    ]
    assert 'value="&quot;&gt;&lt;script&gt;"' in viewer.get('/?q="><script>'.replace('"', "%22")).text


@pytest.mark.parametrize(
    "path",
    [
        "/event/999",
        "/event/nonsense",
        "/event/1.9",
        "/context/turn:99",
        "/go?at=pzz:1",
        "/turns?then=99",
        "/copy/99",
    ],
)
def test_an_unknown_event_gets_a_sentence(path: str, viewer: Served) -> None:
    answer = viewer.get(viewer.path + path)
    assert answer.status in (404, 409) and 'class="failure"' in answer.text and "Traceback" not in answer.text


def test_an_unknown_run_gets_a_page_with_the_way_back(viewer: Served) -> None:
    answer = viewer.get("/run/0123456789abcdef", Sec_Fetch_Mode="navigate")
    assert answer.status in (404, 409) and 'href="/"' in answer.text


def test_a_file_that_shrinks_or_vanishes_leaves_the_rest_usable(tmp_path: Path) -> None:
    five_turns(tmp_path / "five.jsonl")
    two_agents(tmp_path / "two.jsonl", lanes=True)
    with served(tmp_path / "five.jsonl") as viewer:
        assert viewer.get(viewer.path).status == 200
        whole = (tmp_path / "five.jsonl").read_bytes()
        (tmp_path / "five.jsonl").write_bytes(whole[:2000])
        assert "reenact met a fault" not in viewer.get(viewer.path).text
        assert "reenact met a fault" not in viewer.get(f"{viewer.path}/event/30").text
        (tmp_path / "five.jsonl").unlink()
        assert "reenact met a fault" not in viewer.get(viewer.path).text
        assert viewer.get("/").text.count('href="/run/') == 1


def test_replays_and_forks_stand_below_their_parent(tmp_path: Path) -> None:
    five_turns(tmp_path / "five.jsonl")
    parent = json.loads((tmp_path / "five.jsonl").read_text().splitlines()[0])["run"]
    Tap(tmp_path / "again.jsonl", meta={"replay_of": parent}).close()
    with served(tmp_path) as viewer:
        page = viewer.get("/").text
        assert page.index("/run/") < page.index("└ replay") and page.count('class="below"') == 1


def refused(*words: object, cwd: Path, **more: str) -> str:
    ended = finish(start("-m", "reenact", "view", *words, "--no-open", cwd=cwd, **more))
    assert (ended.code, ended.out) == (2, "") and "Traceback" not in ended.err
    return ended.err


def test_what_cannot_be_shown_is_named(tmp_path: Path) -> None:
    assert "no folder .reenact" in refused(cwd=tmp_path)
    assert "nowhere" in refused("nowhere.jsonl", cwd=tmp_path)
    assert "port" in refused(".", "--port", "99999", cwd=tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"cannot listen on port {port}" in refused(".", "--port", port, cwd=tmp_path)


def test_a_folder_without_runs_has_an_empty_list(tmp_path: Path) -> None:
    with served(tmp_path) as viewer:
        assert "No run is here" in viewer.get("/").text


def test_a_missing_extra_is_named_with_its_command(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['starlette'] = None; from reenact.cli.main import main; sys.exit(main(['view', '.']))"
    done = subprocess.run(
        [sys.executable, "-c", hide],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and 'pip install "reenact[view]"' in done.stderr


def test_without_a_browser_the_address_is_printed(tmp_path: Path) -> None:
    five_turns(tmp_path / "five.jsonl")
    child = start(
        "-m", "reenact", "view", "five.jsonl", "--json", cwd=tmp_path, BROWSER="/nonexistent", PATH=""
    )
    assert child.stdout is not None
    assert json.loads(child.stdout.readline())["address"].startswith("http://127.0.0.1:")
    child.send_signal(2)
    ended = finish(child, 60)
    assert ended.code == 0 and "Open this address in a browser" in ended.err


def test_the_last_line_of_the_demo_opens_its_run(tmp_path: Path) -> None:
    shown = finish(start("-m", "reenact", "demo", "--keep", "runs", cwd=tmp_path))
    line = [line.strip() for line in shown.out.splitlines() if " view " in line][-1]
    assert "in the browser" in shown.out.splitlines()[-1]
    with served(*shlex.split(line.partition(" view ")[2]), cwd=tmp_path) as viewer:
        assert "trip-planner" in viewer.get("/").text
