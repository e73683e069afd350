"""A large run as one file, opened from disk: its turns are unpacked when they are opened, and nothing is loaded."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.cli.main import main
from support import browser as browsers
from support.examples import long
from support.hostile_texts import ALL, BIDI
from support.runs_to_debug import answer, request, user


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.opened() as found:
        yield found


def recorded(path: Path, turns: int, size: int) -> Path:
    """So many turns with results of that size; the last tool fails, and hostile texts stand in the second turn."""
    words = [f"{random.Random(at).getrandbits(40):x}" for at in range(500)]
    choose = random.Random(1)
    messages = [user("go")]
    with pytest.raises(ValueError), Tap(path, name="large", redact=False) as tap:
        for turn in range(turns):
            call = tap.record_model_request(request(*messages), "anthropic")
            response = answer(f"turn {turn}", (f"t{turn}", "look", {"q": turn}))
            tap.record_model_response(response, call=call)
            used = tap.record_tool_call("look", {"q": turn}, tool_id=f"t{turn}")
            text = ALL if turn == 1 else f"result {turn} " + " ".join(choose.choices(words, k=size // 11))
            failed = ValueError("the last one") if turn == turns - 1 else None
            tap.record_tool_result("look", text, failed, call=used)
            result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": text}
            messages = [
                *messages[-4:],
                {"role": "assistant", "content": response["content"]},
                {"role": "user", "content": [result]},
            ]
            if failed is not None:
                raise failed
    return path


@pytest.mark.parametrize(("turns", "size"), [(90, 2_000), long(420, 48_000)])
def test_the_turns_of_a_large_run_are_unpacked_when_they_are_opened(
    turns: int, size: int, browser: Any, tmp_path: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    trace, target = recorded(tmp_path / "large.jsonl", turns, size), tmp_path / "large.html"
    assert turns < 400 or trace.stat().st_size > 20 << 20
    assert main(["export", str(trace), "--html", str(target)]) == 0
    written = target.read_text()
    frame = re.sub(r'<script type="application/octet-stream".*?</script>', "", written)
    assert len(frame) < 150_000 and "result 5 " not in written and "window.pwned" not in frame
    noted: list[str] = []
    page = browser.new_page(color_scheme="dark")
    page.on("request", lambda sent: noted.append(sent.url))
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.goto(target.as_uri())
    page.wait_for_selector(".turn[open] .failure >> text=the last one")  # the failure's turn is open
    assert page.locator(".turn").count() == turns and page.locator(".turn[open]").count() == 1
    page.click(".turn:nth-of-type(5) > summary")
    page.wait_for_selector(".turn:nth-of-type(5) >> text=result 4 ")
    page.click(".turn:nth-of-type(2) > summary")
    page.wait_for_selector(".turn:nth-of-type(2) .card")
    page.evaluate("document.querySelectorAll('.turn[open] details').forEach(each => { each.open = true })")
    page.evaluate("location.hash = '#/e/44'")
    page.wait_for_selector("[id='/e/44']")
    page.click("a:has-text('To the failure')")
    assert page.evaluate("window.pwned") is None
    assert not set(BIDI) & set(page.evaluate("document.body.innerText"))
    attributes = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
    )
    assert not [each for each in attributes if each.startswith("on") or each in ("srcdoc", "action", "style")]
    foot = page.inner_text("footer")
    assert "characters of texts longer than 20,000" in foot
    found = [] if turns > 100 else Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    assert [each.partition("#")[0] for each in noted] == [target.as_uri()]
    page.close()
