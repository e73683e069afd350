"""The pages in a real browser: a hostile trace stays inert, nothing is requested, axe finds nothing, keys suffice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import Debugger, Tap
from reenact.compare.report import DIFFERENT, Change, Difference, Row, RunDiff, Side, Step, Unknown
from reenact.pages.comparison.moments_page import moments_page
from reenact.pages.comparison.run_diff_page import run_diff_page
from reenact.pages.document import write_page
from support import browser as browsers
from support.examples import long
from support.hostile_texts import ALL, BIDI, HOSTILE

ALLOWED = {
    "HTML", "HEAD", "META", "TITLE", "STYLE", "BODY", "A", "MAIN", "HEADER", "P", "H1", "H2", "H3", "SMALL", "SPAN", "DIV",
    "SECTION", "ARTICLE", "DL", "DT", "DD", "PRE", "DEL", "INS", "DETAILS", "SUMMARY", "METER", "UL", "LI", "CODE", "FOOTER",
}  # fmt: skip


def run_diff() -> RunDiff:
    """Every field that may come from a trace is hostile."""
    steps = [Step(n, "tool", text, text, text, n) for n, text in enumerate(HOSTILE, 1)]
    roots = [
        Difference(
            n, text, text, (step,), (),
            (Change(text, text, text, text[::-1]), Change("result", "", {text: [text]}, None, has_right=False)),
            text, hint=text,
        )
        for n, (text, step) in enumerate(zip(HOSTILE, steps, strict=True), 1)
    ]  # fmt: skip
    follows = Difference(99, "extra-step", ALL, (), (steps[0],), follows=1)
    rows = [Row(step, step, n) for n, step in enumerate(steps, 1)] + [
        Row(None, steps[0], 99),
        Row(steps[0], None),
    ]
    side = Side(ALL, ALL, ALL, ALL, 3, ALL)
    return RunDiff(
        side, side, DIFFERENT, (*roots, follows), tuple(rows), (1, 1), (Unknown(steps[0], steps[1], ALL, ALL),),
        (ALL,), (ALL,), 3, (ALL, ALL, ALL),
    )  # fmt: skip


def moments(path: Path) -> Any:
    tap = Tap(path, name=HOSTILE[0], redact=False)
    old = [{"role": text, "content": text} for text in HOSTILE]
    new = [
        {"role": "user", "content": [{"type": "tool_use", "id": text, "name": text, "input": {text: text}}]}
        for text in HOSTILE
    ]
    new += [{"role": "tool", "content": f"{HOSTILE[2]} and some words that are the same in both"}]
    old += [{"role": "tool", "content": f"{HOSTILE[3]} and some words that are the same in both"}]
    for messages in (old, new):
        call = tap.record_model_request(
            {"model": "m", "system": ALL + str(len(messages)), "messages": messages}, "anthropic"
        )
        tap.record_model_response({"content": []}, call=call)
    tap.close()
    return Debugger.load(path).diff_turns(1, 2)


def recorded(path: Path, result: str) -> Path:
    """A run whose every text is hostile; two of them differ in what the tool returned."""
    messages = [{"role": "user", "content": ALL}]
    use = {"type": "tool_use", "id": "toolu_1", "name": HOSTILE[0], "input": {HOSTILE[2]: ALL}}
    with Tap(path, name=HOSTILE[1], redact=False) as tap:
        for content in ([use], [{"type": "text", "text": result}]):
            call = tap.record_model_request(
                {"model": HOSTILE[3], "max_tokens": 9, "messages": messages}, "anthropic"
            )
            tap.record_model_response({"type": "message", "role": "assistant", "content": content}, call=call)
            if content == [use]:
                tool = tap.record_tool_call(HOSTILE[0], use["input"])
                tap.record_tool_result(HOSTILE[0], {HOSTILE[4]: result, "same": ALL}, None, call=tool)
                brought = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result}
                messages = [
                    *messages,
                    {"role": "assistant", "content": content},
                    {"role": "user", "content": [brought]},
                ]
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.opened() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"runs": run_diff_page(run_diff()), "turns": moments_page(moments(folder / "run.jsonl"))}
    for name, page in made.items():
        write_page(str(folder / f"{name}.html"), page)
    sides = [recorded(folder / f"{n}.jsonl", f"{ALL} {n}") for n in (1, 2)]
    found = reenact.diff(*sides)
    assert found.differences
    reenact.write_html(found, folder / "recorded.html")
    return {name: folder / f"{name}.html" for name in (*made, "recorded")}


class Visit:
    """A page as a reader opens it; what it would do to the world is noted."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.noted: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("request", lambda request: self.noted.append(f"request {request.url}"))
        self.page.on("console", lambda message: self.noted.append(f"console {message.text}"))
        self.page.on("dialog", lambda dialog: (self.noted.append("dialog"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.noted.append(f"error {error}"))
        self.page.goto(path.as_uri())
        assert self.noted.pop(0) == f"request {path.as_uri()}"


@pytest.mark.parametrize("name", ["runs", "turns", "recorded"])
def test_a_hostile_trace_stays_inert(name: str, browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages[name])
    page = visit.page
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.mouse.click(200, 200)
    page.wait_for_timeout(300)
    assert page.evaluate("window.pwned") is None and visit.noted == [] and page.url == pages[name].as_uri()
    names = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(each => each.tagName))]")
    assert set(names) - ALLOWED == set()
    attributes = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
    )
    assert not [
        each for each in attributes if each.startswith("on") or each in ("src", "style", "srcdoc", "action")
    ]
    links = page.evaluate("[...document.querySelectorAll('a')].map(each => each.getAttribute('href'))")
    assert links and all(link.startswith("#") for link in links)
    assert "&lt;" not in page.title() + page.inner_text("h1")  # escaped once
    shown = page.evaluate("document.body.innerText")
    few = (
        HOSTILE[:1] if name == "recorded" else HOSTILE[:8]
    )  # there, long stretches that stayed are shortened
    assert [text for text in few if text not in shown] == []
    assert not set(BIDI) & set(shown) and (name == "recorded" or "\ufffd" in shown)
    page.close()


@pytest.mark.parametrize("name", ["runs", "turns"])
def test_what_was_left_out_is_stated(name: str, browser: Any, pages: dict[str, Path]) -> None:
    page = Visit(browser, pages[name]).page
    foot = page.inner_text("footer")
    assert "Left out of this page:" in foot and "characters of texts longer than 20,000" in foot
    assert name == "turns" or "3 more differences, which the comparison only counted" in foot
    page.close()


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("runs", "light"), ("turns", "dark"), long("runs", "dark"), long("turns", "light")],
)
def test_axe_finds_nothing(name: str, scheme: str, browser: Any, pages: dict[str, Path]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = Visit(browser, pages[name], color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    page.close()


def test_a_narrow_window_needs_no_scrolling_to_the_side(browser: Any, pages: dict[str, Path]) -> None:
    for path in pages.values():
        page = Visit(browser, path, viewport={"width": 360, "height": 700}).page
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.close()


def test_the_keyboard_opens_what_is_folded(browser: Any, pages: dict[str, Path]) -> None:
    page = Visit(browser, pages["runs"]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the differences"
    page.keyboard.press("Enter")
    assert page.url.endswith("#differences")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True
    page.close()
