"""Make the pictures of the viewer from the demo's run, in the real browser: ``make screenshots``."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from reenact import Recording, Tap  # noqa: E402
from support import browser  # noqa: E402
from support.served import served  # noqa: E402


def one_more(folder: Path, number: int) -> None:
    """Record one of several agents, which ran at different times; every fifth one fails."""
    name = ("trip-planner", "triage", "invoices")[number % 3]
    model = ("claude-sonnet-4-6", "claude-haiku-4-5", "gpt-4o")[number % 3]
    path = folder / f"{name}-{number}.jsonl"
    meta = {"environment": "prod" if number % 2 else "staging", "user": f"u{number % 7}"}
    with suppress(TimeoutError), Tap(path, name=name, meta=meta) as tap:
        for turn in range(1 + number * 5 % 9):
            call = tap.record_model_request({"model": model, "messages": []}, provider="anthropic")
            usage = {"input_tokens": 900 + 700 * turn + 311 * (number * turn % 5), "output_tokens": 90}
            answer = {"type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
            tap.record_model_response(answer, call=call)
            used = tap.record_tool_call("search", {"page": turn})
            tap.record_tool_result("search", "" if number % 7 == 3 else f"{turn} results", call=used)
        if number % 5 == 2:
            raise TimeoutError("no response from search in 30 s")
    then = time.time() - 1800 * (number + 1) ** 1.3
    lines = [
        re.sub(r'"ts": [0-9.]+', f'"ts": {then + 4.7 * at:.6f}', line) for at, line in enumerate(path.open())
    ]
    path.write_text("".join(lines))


def picture_of_a_notebook(run: Recording, opened: Any) -> None:
    """Take what a notebook shows of a run and of its failure, below cells that end with them."""
    page = opened.new_page(viewport={"width": 900, "height": 200})
    page.set_content("<!doctype html><body style='margin: 12px; font: 13px monospace'></body>")
    for code, value in (("Recording.load('runs')", run), ("run.event('@error')", run.event("@error"))):
        html = f"<pre style='background: #f5f5f5; padding: 6px 8px'>{code}</pre>{value._repr_html_()}<br>"
        page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", html)
    page.screenshot(path=HERE / "notebook.png", full_page=True)
    page.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "runs"
        demo = [sys.executable, "-m", "reenact", "demo", "--keep", str(folder)]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        trace = next(folder.glob("*.jsonl"))
        with served(trace.relative_to(above), cwd=Path(above)) as viewer, browser.opened() as opened:
            for scheme in ("light", "dark"):
                page = opened.new_page(viewport={"width": 1280, "height": 720}, color_scheme=scheme)
                page.goto(viewer.address)
                page.wait_for_selector("#context .message")
                page.screenshot(path=HERE / f"viewer-{scheme}.png")
                page.close()
            for number in range(24):
                one_more(folder, number)
            page = opened.new_page(viewport={"width": 1280, "height": 560}, color_scheme="light")
            page.goto(viewer.address)
            page.click("nav a")
            page.wait_for_selector("tbody tr:nth-child(12)")
            page.wait_for_selector("tbody tr:nth-child(12) .lazy", state="detached")
            page.screenshot(path=HERE / "runs-light.png")
            page.close()
            picture_of_a_notebook(Recording.load(trace), opened)


main()
