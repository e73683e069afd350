"""A secret in a kind, a name, bytes, an id, or one that came into the environment late, is not in the bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap, Trace
from reenact.capture.redact import redactor as redact

KEY = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv0123456789xyzXYZ"
PASSWORD = "hunter2-Hunter2"
OPAQUE = "q8Zr-opaque-Value-77xK"


class Shown:
    def __repr__(self) -> str:
        return PASSWORD


PLACES: dict[str, Callable[[Tap, Trace], Any]] = {
    "kind": lambda tap, trace: trace.step(f"called with {KEY}"),
    "field name": lambda tap, trace: trace.step("note", **{KEY: 1}),
    "body key": lambda tap, trace: tap.record_model_request({"messages": [], KEY: 1}),
    "bytes": lambda tap, trace: trace.step("note", data=b"Bearer " + KEY.encode()),
    "ASGI headers": lambda tap, trace: trace.step("note", headers=[(b"authorization", KEY.encode())]),
    "bytes under a secret name": lambda tap, trace: trace.step("note", password=PASSWORD.encode()),
    "object under a secret name": lambda tap, trace: trace.step("note", user={"password": Shown()}),
    "environment value as id": lambda tap, trace: trace.step("note", user={"session_id": OPAQUE}),
    "URL as id": lambda tap, trace: trace.step("note", db={"id": f"postgres://u:{PASSWORD}@host/db"}),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_found_in(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_SECRET", OPAQUE)
    events: list[dict[str, Any]] = []
    with Tap(tmp_path / "run.jsonl", writer=events.append) as tap:
        PLACES[place](tap, Trace(tap._own))
    assert len(events) == 3
    for written in ((tmp_path / "run.jsonl").read_text(), repr(events)):
        for secret in (KEY, PASSWORD, OPAQUE):
            assert secret not in written
            for before in (b"", b".", b"..", b"Bearer "):  # the secret begins at any place of three bytes
                coded = base64.b64encode(before + secret.encode()).decode()
                assert coded[len(before) + 3 : -4] not in written


def test_a_secret_that_came_into_the_environment_later_is_known_by_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Tap(tmp_path / "run.jsonl") as tap:
        monkeypatch.setenv("DB_PASSWORD", OPAQUE)
        tap.record_model_request({"messages": [{"role": "user", "content": f"it is {OPAQUE}"}]})
    assert OPAQUE not in (tmp_path / "run.jsonl").read_text()


def test_ever_new_secrets_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "MAX_PLACEHOLDERS", 10)
    redactor = redact.Redactor({})
    texts = {redactor.clean(f"{number:04d}-password-{number}", "password") for number in range(100)}
    assert len(texts) == 100
    assert len(redactor.placeholders) <= 10


@pytest.mark.parametrize("before", ["\n", "\t", "é", "日本", "x\n"])
@pytest.mark.parametrize(
    "name", ["api key: ", "private key = ", "secret key=", "--token ", "--api-key  ", "password="]
)
def test_a_secret_right_after_what_json_escapes(before: str, name: str) -> None:
    text = f"notes{before}{name}hunter2-Tr0ub4dor"
    for held in (text, {"said": [text]}):
        assert "Tr0ub4dor" not in str(redact.Redactor({}).clean(held))
    assert b"Tr0ub4dor" not in redact.Redactor({}).clean(text.encode())
