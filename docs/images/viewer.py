"""Make the pictures of the viewer from the demo's run, in the real browser: ``make screenshots``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from support import browser  # noqa: E402
from support.served import served  # noqa: E402


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo = [sys.executable, "-m", "reenact", "demo", "--keep", folder]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        trace = next(Path(folder).glob("*.jsonl"))
        with served(trace) as viewer, browser.opened() as opened:
            for scheme in ("light", "dark"):
                page = opened.new_page(viewport={"width": 1280, "height": 720}, color_scheme=scheme)
                page.goto(viewer.address)
                page.wait_for_selector("#context .message")
                page.screenshot(path=HERE / f"viewer-{scheme}.png")
                page.close()


main()
