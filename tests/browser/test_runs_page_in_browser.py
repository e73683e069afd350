"""The page of all runs in a real browser: figures of whole files, search and order, choosing two to compare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from support import browser as browsers
from support.examples import long
from support.hostile_texts import ALL, BIDI, HOSTILE
from support.many import agent
from support.runs_to_debug import five_turns
from support.served import served
from support.visits import Visit, failing, hostile


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.opened() as found:
        yield found


def many(folder: Path, number: int) -> None:
    """Files of so many runs, each a copy of one under another name."""
    first = agent(folder / "run0.jsonl", name="run0", meta={"user": "u0"}).read_text()
    run = json.loads(first.splitlines()[0])["run"]
    for at in range(1, number):
        text = (
            first.replace(run, f"{at:032x}").replace('"run0"', f'"run{at}"').replace('"u0"', f'"u{at % 7}"')
        )
        (folder / f"run{at}.jsonl").write_text(text)


def test_the_list_of_runs_shows_what_only_whole_files_hold(browser: Any, tmp_path: Path) -> None:
    five_turns(tmp_path / "five.jsonl")
    agent(tmp_path / "paid.jsonl", name="paid", meta={"environment": "prod", "user": 7})
    failing(tmp_path / "failing.jsonl")
    parent = json.loads((tmp_path / "paid.jsonl").read_text().splitlines()[0])["run"]
    Tap(tmp_path / "again.jsonl", name="paid", meta={"replay_of": parent}).close()
    with served(tmp_path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.until(
            "!document.querySelector('tbody .lazy') && document.querySelectorAll('tbody tr').length === 4"
        )

        def cell(name: str, what: str) -> str:
            row = page.locator("tbody tr", has=page.locator("th a", has_text=name)).first
            return str(row.locator(f"[data-lazy={what}]").inner_text())

        assert cell("paid", "money").startswith("$0.000") and cell("failing", "suspects") == "1"
        assert page.locator("tbody tr:has-text('five') [data-lazy=turns] rect").count() == 5
        assert page.locator("tr.below").count() == 1 and page.inner_text("tr.below th").split() == [
            "└",
            "replay",
            "diff",
        ]
        page.click("th button:has-text('money')")
        visit.until("document.querySelector('tbody th a').textContent === 'paid'")
        assert "sort=money" in page.url
        page.click("th button:has-text('money')")
        visit.until("document.querySelector('tbody th a').textContent !== 'paid'")
        assert "sort=-money" in page.url
        page.click(".fact:has-text('environment=prod')")
        visit.until("document.querySelectorAll('tbody tr').length === 1")
        assert page.input_value("input[name=q]") == "environment=prod" and "environment%3Dprod" in page.url
        page.reload()
        visit.until("document.getElementById('summary').textContent.startsWith('1 run ')")
        page.keyboard.press("/")
        page.keyboard.press("Escape")
        visit.until("document.querySelectorAll('tbody tr').length === 4")
        page.click("button[name=status]:has-text('failed')")
        visit.until("document.querySelectorAll('tbody tr').length === 1")
        page.click("button[name=status]:has-text('all')")
        agent(tmp_path / "fresh.jsonl", name="fresh")
        visit.until("document.querySelector('tbody').innerText.includes('fresh')")
        visit.close()


def test_of_very_many_runs_only_those_in_sight_are_in_the_page(browser: Any, tmp_path: Path) -> None:
    many(tmp_path, 600)
    with served(tmp_path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.until("document.getElementById('summary').textContent.startsWith('600 runs')")
        most = 0
        for part in (0.3, 0.7, 1):
            page.evaluate("part => scrollTo(0, part * document.documentElement.scrollHeight)", part)
            visit.until(
                "!document.querySelector('.blank') && document.querySelectorAll('tr[data-key]').length > 9"
            )
            visit.until(
                "[...document.querySelectorAll('.lazy')].every(e => { const b = e.getBoundingClientRect();"
                " return b.bottom <= 0 || b.top >= innerHeight })"
            )
            most = max(most, page.evaluate("document.querySelectorAll('*').length"))
        assert most < 1800
        assert page.evaluate("document.querySelectorAll('tr[aria-rowindex=\"601\"]').length") == 1
        page.keyboard.press("/")
        page.keyboard.type("run599")
        visit.until("document.getElementById('summary').textContent.startsWith('1 run ')")
        visit.close()


def test_two_runs_are_chosen_by_keys_and_compared(browser: Any, tmp_path: Path) -> None:
    agent(tmp_path / "a.jsonl", name=HOSTILE[0])
    agent(tmp_path / "b.jsonl", name="other", tools=("search", HOSTILE[1]))
    with served(tmp_path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        page.route("**/runs?*", lambda route: None)  # a server that has yet to answer
        page.reload()
        visit.until("globalThis.reenact && document.querySelectorAll('tbody tr').length === 2")
        for key in "jxjx":
            page.keyboard.press(key)
        visit.until("!document.getElementById('picked').hidden && !document.getElementById('compare').hidden")
        page.keyboard.press("c")
        page.wait_for_url("**/diff?*")
        assert "Two runs compared" in page.inner_text("body") and page.locator(".root").count() >= 1
        page.click("nav a:has-text('all runs')")
        visit.until("globalThis.reenact && document.querySelectorAll('tbody tr').length === 2")
        page.locator(".pick").first.check()
        page.locator(".pick").last.check()
        page.click("#compare")
        page.wait_for_url("**/diff?*")
        page.locator("a[href^='/run/']").first.click()
        visit.until("document.body.dataset.shown")
        assert page.evaluate("window.pwned") is None
        visit.close()


@pytest.mark.parametrize("scheme", ["dark", long("light")])
def test_hostile_comparisons_stay_inert_and_axe_finds_nothing(
    scheme: str, browser: Any, tmp_path: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    hostile(tmp_path / "a.jsonl")
    agent(tmp_path / "b.jsonl", name=HOSTILE[1], meta={HOSTILE[2]: HOSTILE[3], "user": ALL})
    two_turns = failing(tmp_path / "c.jsonl")
    with served(two_turns) as viewer:
        visit = Visit(browser, viewer, color_scheme=scheme)
        page, found = visit.page, []
        visit.at("9")
        page.keyboard.press("c")
        page.wait_for_url("**/turns?*")
        assert "What the model saw, compared" in page.inner_text("body")
        found += Axe().run(page).response["violations"]
        page.click("nav a:has-text('the run')")
        visit.until("document.body.dataset.shown")
        page.click("nav a:has-text('all runs')")
        visit.until(
            "document.querySelectorAll('tbody tr').length === 3 && !document.querySelector('tbody .lazy')"
        )
        found += Axe().run(page).response["violations"]
        keys = page.evaluate("[...document.querySelectorAll('tbody tr')].map(row => row.dataset.key)")
        page.goto(f"http://127.0.0.1:{viewer.port}/diff?a={keys[1]}&b={keys[2]}")
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        found += Axe().run(page).response["violations"]
        assert page.evaluate("window.pwned") is None
        assert not set(BIDI) & set(page.evaluate("document.body.innerText"))
        links = page.evaluate(
            "[...document.querySelectorAll('[href]')].map(each => each.getAttribute('href'))"
        )
        assert links and all(link.startswith(("#", "/")) and not link.startswith("//") for link in links)
        page.goto(f"http://127.0.0.1:{viewer.port}/diff?a=nonsense&b={keys[2]}")
        assert "No run is at this address" in page.inner_text("body")
        visit.noted = [each for each in visit.noted if "404" not in each and "409" not in each]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
        visit.close()
