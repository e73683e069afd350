"""A secret that a model says a few letters at a time is in no byte that stays, nor is one nobody can look for."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger, Tap
from reenact.capture.http.exchange import Exchange
from reenact.capture.http.watch import Watch
from support.tokens import ROWS, tokens_of

URL = "https://api.anthropic.com/v1/messages"
SECRET = "sk-ant-api03-" + "Ab3dEf9hIjKl" * 6
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}).encode()


def begun(tap: Tap) -> Exchange:
    exchange = Watch(tap.recorder).begin("POST", URL, [], BODY)
    assert exchange is not None
    return exchange


def events(text: str) -> list[bytes]:
    pieces = [text[at : at + 6] for at in range(0, len(text), 6)]
    reported: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"type": "message", "role": "assistant", "content": [], "model": "m"},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}}
            for p in pieces
        ),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in reported]


def stream(tap: Tap, text: str) -> None:
    exchange = begun(tap)
    exchange.answered(200, [("content-type", "text/event-stream")])
    for chunk in events(text):
        exchange.chunk(chunk)
    exchange.end()


def streamed_text(blob: Path) -> str:
    lines = zlib.decompress(blob.read_bytes()).decode().splitlines()
    found = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    return "".join(one["delta"].get("text", "") for one in found if one["type"] == "content_block_delta")


def test_the_stream_of_a_harmless_answer_is_kept_and_that_of_a_secret_is_not(tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl") as tap:
        stream(tap, "Lisbon has seven hills, as everybody knows.")
        stream(tap, f"the key is {SECRET}, keep it")
    kept, withheld = Debugger.load(tmp_path / "run.jsonl").where(event_type="model.response")
    assert kept.raw["form"] == "exact" and withheld.raw == {"withheld": "secret"}
    (blob,) = (tmp_path / "run.blobs").iterdir()  # no .part, and no second blob
    assert streamed_text(blob) == "Lisbon has seven hills, as everybody knows."
    assert withheld.content == "the key is <redacted:anthropic-key:1>, keep it"
    assert '"redacted": 1,' in (tmp_path / "run.jsonl").read_text()  # looking is not counted


def test_an_answer_in_an_encoding_that_cannot_be_read_is_not_kept_at_all(tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl") as tap:
        for kind in ("text/event-stream", "application/json"):
            exchange = begun(tap)
            exchange.answered(200, [("content-type", kind), ("content-encoding", "x-unheard-of")])
            exchange.chunk(b"\x01\x02" + SECRET.encode()[::-1])
            exchange.end()
    for event in Debugger.load(tmp_path / "run.jsonl").where(event_type="model.response"):
        assert event.body is None and event.raw is None
        assert event.problems == ["content encoding x-unheard-of cannot be read here"]
    assert not (tmp_path / "run.blobs").exists()


BODY_OF_TOKEN = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
SECRET_IN_TEXT = {
    "DB_PASS=rosebud99": "rosebud99",
    "Server=h;Uid=sa;Pwd=zz9981x;Database=main": "zz9981x",
    "sshpass -p rosebud99 ssh bob@h": "rosebud99",
    "machine h.example login bob password rosebud99": "rosebud99",
    "['a.py', '--api-key', 'zz9981abc']": "zz9981abc",
    "https://h.example/v1?key=zz9981abcdefghijk": "zz9981",
    "https://h.example/callback?code=zz9981abcdef&state=af0if": "zz9981",
    "root:$6$saltSalt$" + BODY_OF_TOKEN * 2: BODY_OF_TOKEN,
    "https://hooks.slack.com/" + "services/T0ABC1234/B0ABC1234/" + BODY_OF_TOKEN[:24]: BODY_OF_TOKEN[:24],
    "12345678:AA" + BODY_OF_TOKEN: BODY_OF_TOKEN,
    "dp.st.dev." + BODY_OF_TOKEN: BODY_OF_TOKEN,
    '{"auth": "Ym9iOnp6OTk4MQ=="}': "Ym9iOnp6OTk4MQ",
    "Authorization: Bearer " + BODY_OF_TOKEN: BODY_OF_TOKEN,
    "postgres://bob:rosebud99@h/db": "rosebud99",
    f"-----BEGIN RSA PRIVATE KEY-----\n{BODY_OF_TOKEN}\n{BODY_OF_TOKEN}\n-----END RSA PRIVATE KEY-----": BODY_OF_TOKEN,
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{BODY_OF_TOKEN}\n-----END PGP PRIVATE KEY BLOCK-----": BODY_OF_TOKEN,
    f"-----BEGIN PRIVATE KEY-----\n{BODY_OF_TOKEN}\n": BODY_OF_TOKEN,  # begun, and killed before its end
}


def left_of_killed(folder: Path, text: str) -> str:
    """Return what the model had said, as it is on the disk while its stream is still open."""
    with Tap(folder / "run.jsonl") as tap:
        exchange = begun(tap)
        exchange.answered(200, [("content-type", "text/event-stream")])
        pieces = events(f"Well, {'let us see. ' * 40}{text} and that is all {'there is. ' * 40}")
        for chunk in pieces[:-1]:
            exchange.chunk(chunk)
        (part,) = (folder / "run.blobs").glob("*.part")
        on_disk = part.read_text()
        exchange.end()
    spoken = "".join(
        json.loads(line[6:])["delta"].get("text", "")
        for line in on_disk.splitlines()
        if line.startswith("data: ") and '"delta"' in line
    )
    assert "let us see" in spoken
    return spoken + "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("text", SECRET_IN_TEXT)
def test_a_stream_that_was_killed_holds_no_secret_of_any_kind(tmp_path: Path, text: str) -> None:
    assert SECRET_IN_TEXT[text] not in left_of_killed(tmp_path, text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1][:8]}")
def test_a_stream_that_was_killed_holds_no_token_of_the_table(tmp_path: Path, row: tuple[str, ...]) -> None:
    for number, (token, part) in enumerate(tokens_of(row)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert part not in left_of_killed(folder, token), token
