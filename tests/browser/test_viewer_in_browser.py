"""The viewer in a real browser: by keyboard, by link, live, with a hostile trace, with very many events."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact.cli.main import main
from support import browser as browsers
from support.examples import long
from support.harness import environment
from support.hostile_texts import BIDI
from support.runs_to_debug import five_turns, two_agents
from support.served import Served, served
from support.visits import Visit, failing, hostile


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.opened() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    five_turns(folder / "five.jsonl")
    two_agents(folder / "two.jsonl", lanes=True)
    failing(folder / "failing.jsonl")
    return folder


@pytest.fixture(scope="module")
def viewer(folder: Path) -> Iterator[Served]:
    with served(folder / "failing.jsonl") as found:
        yield found


def test_it_opens_at_the_failure_and_is_worked_by_keys(browser: Any, viewer: Served) -> None:
    visit = Visit(browser, viewer)
    visit.at("9")
    page = visit.page
    assert "token" not in page.url and page.inner_text(".status") == "FAILED"
    assert "ValueError" in page.inner_text("#event .failure")
    visit.press("k", "8")
    visit.press("j", "9")
    visit.press("g", "2")
    visit.press("]", "6")
    visit.press("[", "2")
    visit.press("n n", "4")
    visit.press("p", "3")
    visit.press("G", "9" if page.inner_text("#count") == "8 events" else "10")
    visit.press("e", "9")
    assert "go" in page.inner_text("#context") and page.locator("#context .message").count() == 3
    page.keyboard.press("d")
    visit.until("document.querySelectorAll('#context .message').length === 2")
    page.go_back()  # e was a jump, so back leads to where it was made
    visit.until("document.body.dataset.shown !== '9'")
    page.go_forward()
    visit.at("9")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    visit.close()


def test_a_link_leads_to_an_event_and_a_wrong_one_is_explained(browser: Any, viewer: Served) -> None:
    visit = Visit(browser, viewer)
    visit.at("9")
    visit.page.goto(f"http://127.0.0.1:{viewer.port}{viewer.path}#/e/4")
    visit.at("4")
    assert visit.page.inner_text("#event h2") == "look called"
    visit.page.evaluate("location.hash = '#/e/99'")
    visit.page.wait_for_selector("#event .failure >> text=99")
    visit.noted = [each for each in visit.noted if "404" not in each and "409" not in each]
    visit.close()


def test_search_and_filters_are_in_the_address(browser: Any, viewer: Served) -> None:
    visit = Visit(browser, viewer)
    visit.at("9")
    page = visit.page
    page.click("[data-show=tools]")
    visit.until("document.getElementById('count').textContent.startsWith('4 of')")
    page.keyboard.press("/")
    page.keyboard.type("found")
    visit.until("document.getElementById('count').textContent.startsWith('1 of')")
    assert "show=tools" in page.url and "q=found" in page.url
    page.reload()
    visit.until("document.getElementById('count').textContent.startsWith('1 of')")
    assert page.input_value("#search") == "found"
    page.click("nav a")
    page.wait_for_selector("table.runs")
    page.fill("input[name=q]", "five")
    page.keyboard.press("Enter")
    visit.until("document.querySelectorAll('table.runs tbody tr').length === 1")
    assert "q=five" in page.url
    visit.close()


GROWING = """
import sys
from reenact import Tap
from reenact.cli.main import main
tap = Tap(sys.argv[1], name="growing")
for line in sys.stdin:
    tap.record_tool_result("look", line.strip(), call=tap.record_tool_call("look", {}))
    print("done", flush=True)
tap.close()
"""


def test_a_run_that_grows_is_followed_without_losing_the_place(browser: Any, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(GROWING)
    child = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "growing.jsonl")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip

    def grow(text: str) -> None:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(f"{text}\n")
        child.stdin.flush()
        assert child.stdout.readline() == "done\n"

    grow("one")
    with served(tmp_path / "growing.jsonl") as viewer:
        visit = Visit(browser, viewer)
        visit.at("2")
        page = visit.page
        assert page.inner_text(".status") == "RUNNING"
        for number in range(30):
            grow(f"more {number}")
        visit.until("document.getElementById('count').textContent === '62 events'")
        visit.at("2")
        assert page.evaluate("document.getElementById('list').scrollTop") == 0
        page.keyboard.press("f")
        visit.at("63")
        grow("the last")
        visit.at("65")
        assert "the last" in page.inner_text("#event")
        child.stdin.close()  # type: ignore[union-attr]
        page.wait_for_selector(".status.good")
        visit.close()
    assert child.wait(60) == 0
    child.stdout.close()  # type: ignore[union-attr]


def test_a_hostile_trace_stays_inert(browser: Any, tmp_path: Path) -> None:
    with served(hostile(tmp_path / "hostile.jsonl")) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.until("document.body.dataset.shown")
        for key in ("g", "j", "j", "G"):
            page.keyboard.press(key)
            page.wait_for_timeout(200)
            page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        page.click("#show-lanes")
        page.wait_for_timeout(300)
        assert page.evaluate("window.pwned") is None
        attributes = set(
            page.evaluate("[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames())")
        )
        assert not {each for each in attributes if each.startswith("on") or each in ("srcdoc", "action")}
        links = page.evaluate(
            "[...document.querySelectorAll('[href]')].map(each => each.getAttribute('href'))"
        )
        assert links and all(link.startswith(("#", "/")) and not link.startswith("//") for link in links)
        shown = page.evaluate("document.body.innerText")
        assert not set(BIDI) & set(shown)
        page.goto(f"http://127.0.0.1:{viewer.port}/")
        page.wait_for_selector("table.runs")
        assert page.evaluate("window.pwned") is None
        visit.close()


def test_an_exported_run_opens_from_disk_and_loads_nothing(browser: Any, tmp_path: Path) -> None:
    for name, trace in (
        ("failing", failing(tmp_path / "a.jsonl")),
        ("hostile", hostile(tmp_path / "b.jsonl")),
    ):
        target = tmp_path / f"{name}.html"
        assert main(["export", str(trace), "--html", str(target)]) == 0
        noted: list[str] = []
        page = browser.new_page()
        page.on("request", lambda sent: noted.append(sent.url))
        page.on("console", lambda message: noted.append(message.text))
        page.goto(f"{target.as_uri()}#/e/3")
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        page.wait_for_timeout(200)
        assert [each.partition("#")[0] for each in noted] == [target.as_uri()]
        assert page.evaluate("window.pwned") is None and page.locator("script").count() == 0
        assert page.locator("[id='/e/3']").count() == 1
        text = page.inner_text("body")
        assert not set(BIDI) & set(text)
        if name == "failing":
            assert "FAILED" in text and "Turn 2" in text and "Nothing of the run was left out." in text
        else:
            assert "Left out of this page" in text
        page.close()
    target.write_text("mine")
    assert main(["export", str(trace), "--html", str(target)]) == 2 and target.read_text() == "mine"
    assert main(["export", str(trace), "--html", str(target), "--force"]) == 0


@pytest.mark.parametrize("events", [20_000, long(100_000), long(1_000_000)])
def test_of_very_many_events_only_those_in_sight_are_in_the_page(
    events: int, browser: Any, tmp_path: Path
) -> None:
    path = tmp_path / "many.jsonl"
    five_turns(path)
    first = path.read_text().splitlines()[0]
    line = json.loads(first)
    with path.open("w") as file:
        file.write(first + "\n")
        head = f'{{"ts": {line["ts"]}, "run": "{line["run"]}", "w": "{line["w"]}", "step": '
        file.writelines(
            f'{head}{step}, "kind": "note", "text": "word {step}"}}\n' for step in range(2, events + 2)
        )
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.at("2")
        most = 0
        for part in (0.1, 0.5, 0.9, 1):
            page.evaluate(
                "part => { const l = document.getElementById('list'); l.scrollTop = part * l.scrollHeight }",
                part,
            )
            visit.until("!document.querySelector('.row.blank') && document.querySelector('.row')")
            most = max(most, page.evaluate("document.querySelectorAll('*').length"))
        assert most < 800
        visit.until(
            "text => document.getElementById('window').innerText.includes(text)", f"word {events + 1}"
        )
        visit.press("G", str(events + 1))
        visit.press("k", str(events))
        page.keyboard.press("/")
        page.keyboard.type(f"word {events // 2}")
        visit.until("document.getElementById('count').textContent.match(/^[0-9]+ of [^%]*$/)")
        visit.until(
            "text => document.getElementById('window').innerText.includes(text)", f"word {events // 2}"
        )
        visit.close()


@pytest.mark.parametrize("scheme", ["light", long("dark")])
def test_axe_finds_nothing(scheme: str, browser: Any, viewer: Served) -> None:
    from axe_playwright_python.sync_playwright import Axe

    visit = Visit(browser, viewer, color_scheme=scheme)
    visit.at("9")
    visit.page.click("#show-lanes")
    visit.page.wait_for_selector(".bars svg")
    found = Axe().run(visit.page).response["violations"]
    visit.page.goto(f"http://127.0.0.1:{viewer.port}/")
    visit.page.wait_for_selector("table.runs")
    found += Axe().run(visit.page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    visit.close()
