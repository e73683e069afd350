"""A visit to the viewer with a real browser, and the runs that are looked at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from reenact import Tap
from support.hostile_texts import ALL, HOSTILE
from support.runs_to_debug import answer, request, user
from support.served import Served


class Visit:
    """A page that a reader opens; requests to anywhere else, messages and errors are noted."""

    def __init__(self, browser: Any, viewer: Served, path: str | None = None, **options: Any) -> None:
        self.noted: list[str] = []
        self.page = page = browser.new_page(**options)
        own = f"http://127.0.0.1:{viewer.port}/"
        page.on("request", lambda sent: sent.url.startswith((own, "data:")) or self.noted.append(sent.url))
        page.on("console", lambda message: self.noted.append(f"console {message.text}"))
        page.on("dialog", lambda dialog: (self.noted.append("dialog"), dialog.dismiss()))
        page.on("pageerror", lambda error: self.noted.append(f"error {error}"))
        page.goto(viewer.address if path is None else f"{own}{path}")

    def until(self, holds: str, value: Any = None) -> None:
        """Wait for a condition; looked at from outside, since the page's policy allows nobody to evaluate texts."""
        end = time.monotonic() + 60
        while not self._holds(holds, value):
            assert time.monotonic() < end, (holds, value, self.page.url, self.page.inner_text("body")[:2000])
            self.page.wait_for_timeout(20)

    def _holds(self, holds: str, value: Any) -> bool:
        try:
            return bool(self.page.evaluate(holds, value))
        except Exception as why:
            if "context was destroyed" not in str(why):
                raise
            return False  # another page is being loaded

    def at(self, address: str) -> None:
        """Wait until an event is shown."""
        self.until("at => document.body.dataset.shown === at", address)
        assert self.page.url.endswith(f"#/e/{address}")

    def press(self, keys: str, address: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)
        self.at(address)

    def close(self) -> None:
        assert self.noted == []
        self.page.context.close() if len(self.page.context.pages) == 1 else self.page.close()


def failing(path: Path) -> Path:
    """Two turns; the tool of the second one fails, and so does the run."""
    try:
        with Tap(path, name="failing") as tap:
            messages = [user("go")]
            for turn in range(2):
                call = tap.record_model_request(request(*messages), "anthropic")
                response = answer(f"turn {turn}", (f"t{turn}", "look", {"q": turn}))
                tap.record_model_response(response, call=call)
                used = tap.record_tool_call("look", {"q": turn}, tool_id=f"t{turn}")
                tap.record_tool_result(
                    "look", "found" if turn == 0 else None, ValueError("no") if turn else None, call=used
                )
                result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": "found"}
                messages += [
                    {"role": "assistant", "content": response["content"]},
                    {"role": "user", "content": [result]},
                ]
            raise ValueError("no")
    except ValueError:
        pass
    return path


def hostile(path: Path) -> Path:
    """A run whose every text, name and key is hostile."""
    with Tap(path, name=HOSTILE[0], redact=False) as tap:
        messages = [{"role": text, "content": text} for text in HOSTILE]
        picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/leak.png"}}
        inline = {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9InB3bmVkPTEiLz4="}
        messages.append({"role": "user", "content": [picture, {"type": "image", "source": inline}]})
        body = {"model": ALL, "system": ALL, "messages": messages, ALL: ALL}
        call = tap.record_model_request(body, "anthropic", lane=HOSTILE[1])
        uses = [(text, text, {text: text}) for text in HOSTILE]
        tap.record_model_response(answer(ALL, *uses), call=call)
        for text in HOSTILE:
            used = tap.record_tool_call(text, {text: [text]})
            tap.record_tool_result(text, {text: text}, call=used)
        tap.record_tool_result("end", error=ValueError(ALL), call=tap.record_tool_call("end", {}))
    return path
