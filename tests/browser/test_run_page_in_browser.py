"""The page of a run in a real browser: what messages hold, lanes, plots, streams, and files that change under it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from support import browser as browsers
from support.provider import Provider
from support.runs_to_debug import answer, request, two_agents, user
from support.served import served
from support.visits import Visit, failing

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SECRET = "sk-ant-api03-" + "a1B2c3D4" * 10


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.opened() as found:
        yield found


def many_sorts(path: Path) -> Path:
    """A request with a picture and a secret, a response with a thought, a tool whose result is sent changed."""
    picture = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    first = {
        "role": "user",
        "content": [{"type": "image", "source": picture}, {"type": "text", "text": SECRET}],
    }
    with Tap(path, name="sorts") as tap:
        call = tap.record_model_request(request(first), "anthropic")
        response = answer("I look.", ("t1", "look", {"where": {"deep": [1, 2]}}))
        response["content"].insert(0, {"type": "thinking", "thinking": "Let me think.", "signature": "s"})
        tap.record_model_response(response, call=call)
        used = tap.record_tool_call("look", {"where": {"deep": [1, 2]}}, tool_id="t1")
        tap.record_tool_result("look", "forty boats", call=used)
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "four boats"}
        messages = [
            first,
            {"role": "assistant", "content": response["content"]},
            {"role": "user", "content": [result]},
        ]
        call = tap.record_model_request(request(*messages), "anthropic")
        tap.record_model_response(answer("Four."), call=call)
    return path


def test_what_a_message_holds_is_shown_for_what_it_is(browser: Any, tmp_path: Path) -> None:
    with served(many_sorts(tmp_path / "run.jsonl")) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.at("2")
        visit.until("document.querySelector('#context img')?.naturalWidth === 1")
        assert page.inner_text("#context .mark.redacted") == "redacted" and SECRET not in page.content()
        visit.press("j", "3")
        thought = page.locator("#event details.thought")
        assert thought.get_attribute("open") is None and "Let me think" not in page.inner_text("#event")
        thought.locator("summary").click()
        assert "Let me think" in page.inner_text("#event")
        visit.press("j j", "5")  # a call and its result are one
        pair = page.inner_text("#event .pair")
        assert "Returned by the tool" in pair and "forty boats" in pair
        assert "Sent to the model" in pair and "four boats" in pair and "differs" in pair
        page.click("#event a:text-is('4')")
        visit.at("4")
        page.locator("#event .tree summary", has_text="deep").first.click()
        assert page.locator("#event .tree .value", has_text="2").first.is_visible()
        page.click("summary:text-is('Stored line')")
        assert '"kind": "tool.called"' in page.inner_text("pre.raw")
        visit.close()


def test_lanes_are_switched_zoomed_selected_and_filtered(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    with Tap(path, name="lanes") as tap:
        for turn in range(40):
            lane = ("north", "south")[turn % 2]
            call = tap.record_model_request(request(user(f"go {turn}")), "anthropic", lane=lane)
            tap.record_model_response(answer(f"turn {turn}", usage=(100 + turn, 7)), call=call)
    with served(path) as viewer:
        visit = Visit(browser, viewer, viewport={"width": 1400, "height": 900})
        page = visit.page
        visit.at("2")
        page.keyboard.press("l")
        axis = "words => document.querySelector('#lanes .axis')?.textContent === words"
        visit.until(axis, "turns 1 to 40 of 40")
        assert page.locator("#lanes .lane-bars").count() == 2
        page.click("[data-by=tokens]")
        visit.until("document.querySelector('#lanes a.bar[aria-label=\"turn 40: 146 tokens\"]')")
        page.click("[data-by=money]")
        visit.until("document.querySelector('#lanes a.bar')?.ariaLabel.includes('$')")
        page.click("#lanes [data-zoom='0.5']")
        visit.until("document.querySelectorAll('#lanes a.bar').length < 30")
        page.click("#lanes [data-zoom='0']")
        visit.until(axis, "turns 1 to 40 of 40")
        box = page.locator("#lanes .bars").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.502, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.748, box["y"] + 10)
        page.mouse.up()
        visit.until(axis, "turns 21 to 30 of 40")
        visit.at("2")  # dragging is no click
        page.mouse.wheel(0, 300)
        visit.until("!document.querySelector('#lanes .axis').textContent.startsWith('turns 21 ')")
        page.focus("#lanes a.bar")
        page.keyboard.press("0")
        visit.until(axis, "turns 1 to 40 of 40")
        page.click("#lanes a.bar[data-first='40']")
        visit.at("80")
        assert page.locator("#lanes a.bar.here").get_attribute("data-first") == "40"
        page.click("#lanes [data-lane=north]")
        visit.until("document.getElementById('count').textContent.startsWith('40 of')")
        assert "lane=north" in page.url and page.inner_text("#clear-lane") == "lane north ×"
        page.click("#clear-lane")
        visit.until("document.getElementById('count').textContent === '80 events'")
        visit.close()


def test_a_click_on_a_plot_selects_the_turn(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    two_agents(path, lanes=False)
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.until("document.body.dataset.shown")
        page.keyboard.press("t")
        visit.until("document.querySelectorAll('#plots svg').length === 3")
        tokens = page.locator("#plots svg").first.locator("a.bar")
        assert tokens.count() == 4 and tokens.first.get_attribute("aria-label") == "turn 1: 15 tokens"
        tokens.nth(1).click()
        visit.until("document.querySelector('#event [data-turn]')?.dataset.turn === '2'")
        visit.until("document.querySelector('#plots a.bar.here')?.dataset.first === '2'")
        visit.close()


def test_a_stream_is_played_as_it_came(browser: Any, tmp_path: Path) -> None:
    anthropic = pytest.importorskip("anthropic")
    path = tmp_path / "streamed.jsonl"
    with Provider() as provider, Tap(path, name="streamed") as tap:
        site = provider.url("thinking,long-20,drip-5")
        client = tap.wrap(anthropic.Anthropic(api_key="none", base_url=site))
        asked = {"model": "claude-sonnet-4-6", "max_tokens": 99, "messages": [user("go")]}
        with client.messages.stream(**asked) as stream:
            whole = stream.get_final_text()
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.at("2")
        page.keyboard.press("s")
        page.wait_for_selector("#note >> text=no streamed response")
        visit.press("j", "3")
        assert "first token after" in page.inner_text("#event .facts")
        page.keyboard.press("s")
        visit.until("text => document.querySelector('.played')?.textContent.endsWith(text)", whole)
        assert page.locator(".played .thinking").count() == 1
        page.evaluate("() => { const s = document.querySelector('.player input'); s.value = 0;"
                      " s.dispatchEvent(new Event('input', {bubbles: true})) }")  # fmt: skip
        visit.until("text => !document.querySelector('.played').textContent.includes(text)", whole)
        page.click("[data-play]")
        visit.until("text => document.querySelector('.played').textContent.endsWith(text)", whole)
        visit.until("document.querySelector('[data-play]').textContent === 'play'")
        visit.close()


def test_a_file_that_shrinks_or_vanishes_is_explained_in_place(browser: Any, tmp_path: Path) -> None:
    path = failing(tmp_path / "run.jsonl")
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        page = visit.page
        visit.at("9")
        os.truncate(path, path.stat().st_size // 2)
        page.reload()
        page.wait_for_selector("#event .failure >> text=at 9")
        visit.until("document.querySelectorAll('#window .row').length === 4")
        visit.until("document.querySelector('#found')?.textContent.includes('run.jsonl')")  # the torn line
        path.unlink()
        page.reload()
        page.wait_for_selector("h1 >> text=Nothing to show here")
        assert "run.jsonl" in page.inner_text("main")
        visit.noted = [each for each in visit.noted if "404" not in each and "409" not in each]
        visit.close()


def test_a_running_run_whose_file_vanishes_says_so(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    tap = Tap(path, name="running")
    tap.record_tool_result("look", "one", call=tap.record_tool_call("look", {}))
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        visit.at("2")
        path.unlink()
        visit.until(
            "document.getElementById('count').textContent.startsWith('The file can no longer be read')"
        )
        assert visit.page.inner_text("#event h2") == "look called"
        visit.noted = [each for each in visit.noted if "404" not in each and "409" not in each]
        visit.close()
    tap.close()


def test_a_damaged_file_shows_what_is_whole(browser: Any, tmp_path: Path) -> None:
    path = failing(tmp_path / "run.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][:20] + b"\xff\x00garbage\n"
    path.write_bytes(b"".join(lines))
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        visit.at("9")
        visit.until("document.getElementById('count').textContent === '8 events'")
        visit.until("document.querySelector('#found')?.textContent.includes('line 5')")
        visit.close()


@pytest.mark.long
def test_a_very_large_run_shows_its_ends_first_and_the_rest_with_progress(
    browser: Any, tmp_path: Path
) -> None:
    path, filler = tmp_path / "large.jsonl", "boats and tides " * 600
    with Tap(path, name="large", redact=False, segment_bytes=100 << 20) as tap:
        for turn in range(10_000):
            call = tap.record_model_request(request(user(f"go {turn}")), "anthropic")
            tap.record_model_response(answer(f"turn {turn} {filler}"), call=call)
            tap.record_tool_result("look", f"{turn} {filler}", call=tap.record_tool_call("look", {}))
    with served(path) as viewer:
        visit = Visit(browser, viewer)
        visit.at("2")
        visit.press("G", "40001" if visit.page.inner_text("#count").startswith("40,000") else "40002")
        visit.until("document.getElementById('count').textContent === '40,000 events'")
        visit.page.goto(f"http://127.0.0.1:{viewer.port}{viewer.path}#/e/turn:5000")
        visit.until("document.querySelector('#event [data-turn]')?.dataset.turn === '5000'")
        assert "$" in visit.page.inner_text("#head")
        visit.close()
