"""The file of list prices: fast when it exists, void after an upgrade, harmless when damaged or closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pytest

from reenact.prices import Book

import_module("genai_prices")

LINE = {"ts": 1_780_000_000.0, "kind": "llm_call", "model": "claude-sonnet-4-5", "input_tokens": 1_000_000}
ASK = f"""
import sys
from reenact.prices import Book
price = Book.open().price({LINE!r})
print(price.usd, price.why, "genai_prices" in sys.modules)
"""


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "reenact" / "prices.json"


def ask(*options: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", ASK],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_second_process_does_not_load_the_package(saved):
    assert ask() == "6.000000 None True"
    assert ask() == "6.000000 None False"


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\xfe",
        b'{"stamp": "',
        b"[]",
        b'{"cards": 5}',
        b'{"cards": {}, "hosts": [5]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_saved_is_written_anew(saved, damage):
    saved.parent.mkdir(parents=True)
    saved.write_bytes(damage)
    assert Book.open().price(LINE).usd == 6
    assert json.loads(saved.read_bytes())["cards"]


@pytest.mark.parametrize(
    "damage",
    [
        5,
        {},
        {"starts": [], "daily": False},
        {"starts": ["soon"], "daily": False, "rates": {}},
        {"starts": [], "daily": False, "rates": 7},
        {"starts": [], "daily": False, "rates": {"0": [["input_tokens", [], 1]]}},
        {"starts": [], "daily": False, "rates": {"0": [["input_tokens", [], 1, "cheap", []]]}},
        {"starts": [], "daily": False, "rates": {"0": [["input_tokens", [0], 1, "3", []]]}},
    ],
)
def test_a_damaged_card_is_taken_anew(saved, damage):
    Book.open().price(LINE)
    known = json.loads(saved.read_bytes())
    known["cards"] = dict.fromkeys(known["cards"], damage)
    saved.write_text(json.dumps(known))
    assert Book.open().price(LINE).usd == 6


def test_cards_of_another_version_of_the_package_are_void(saved):
    Book.open().price(LINE)
    known = json.loads(saved.read_bytes())
    known["stamp"] = "1 0.0.1 0 0"
    rates = [lines for card in known["cards"].values() for lines in card["rates"].values()]
    assert rates
    for lines in rates:
        for line in lines:
            line[3] = "99"
    saved.write_text(json.dumps(known))
    assert Book.open().price(LINE).usd == 6
    assert json.loads(saved.read_bytes())["stamp"] != "1 0.0.1 0 0"


def test_a_cache_folder_that_cannot_be_made_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert Book.open().price(LINE).usd == 6


@pytest.mark.long
def test_processes_that_write_at_once_leave_a_whole_saved(saved):
    code = ASK.replace("'claude-sonnet-4-5'", "sys.argv[1]")
    models = ["claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro"]
    running = [
        subprocess.Popen([sys.executable, "-c", code, model], stdout=subprocess.PIPE, text=True)
        for model in models
    ]
    assert all("None True" in process.communicate()[0] for process in running)
    assert json.loads(saved.read_bytes())["cards"]
    assert sorted(path.name for path in saved.parent.iterdir()) == ["prices.json"]


def test_a_trace_full_of_made_up_models_does_not_fill_the_disk(saved):
    book = Book.open()
    for number in range(400):
        assert book.price({**LINE, "model": f"claude-made-up-{number}"}).usd is None
    assert len(json.loads(saved.read_bytes())["cards"]) <= 256
    assert book.price(LINE).usd == 6


def test_rates_of_a_day_and_of_terms_are_saved_each(saved):
    days = [1_700_000_000.0, 1_794_000_000.0]
    lines = [{**LINE, "model": "gpt-5", "ts": ts} for ts in days]
    body = {"object": "response", "model": "gpt-5", "usage": {"input_tokens": 10**6, "output_tokens": 0}}
    lines += [{"ts": days[1], "body": {**body, "service_tier": tier}} for tier in ("flex", "nonsense")]
    first = [Book.open().price(line) for line in lines]
    assert first[2].usd < first[1].usd and first[3].why == "no nonsense price for gpt-5"
    code = f"""
import sys
from reenact.prices import Book
print(*(Book.open().price(line).usd for line in {lines!r}), "genai_prices" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*(str(price.usd) for price in first), "False"]


def test_without_the_package_prices_are_unknown_and_nothing_fails(saved):
    assert (
        ask("-S", PYTHONPATH=str(Path(__file__).parents[3] / "src")) == "None no price table installed False"
    )


def test_without_the_package_the_source_says_how_to_get_it(saved, monkeypatch):
    monkeypatch.setattr("reenact.money.rates._installed", lambda: None)
    book = Book.open()
    assert book.source == "none (pip install 'reenact[debug]')"
    assert book.bill().as_dict()["dated"] is None


def test_a_package_we_cannot_read_is_named(saved, tmp_path):
    fake = tmp_path / "fake"
    (fake / "genai_prices").mkdir(parents=True)
    (fake / "genai_prices" / "__init__.py").write_text("")
    (fake / "genai_prices" / "data.py").write_text("providers = []\n")
    (fake / "genai_prices-0.0.1.dist-info").mkdir()
    code = ASK + "print(Book.open().source)\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(fake)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, source = done.stdout.splitlines()
    assert first == "None price table not readable True"
    assert source.startswith("genai-prices 0.0.1 cannot be read: ")


def test_a_report_of_many_calls_is_quick(saved):
    book = Book.open()
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 64}}
    body = {"model": "gpt-4o", "choices": [{"message": {}, "finish_reason": "stop"}], "usage": usage}
    line = {"ts": 1_780_000_000.0, "kind": "model.response", "body": body}
    request = {"url": "https://api.openai.com/v1/chat/completions", "provider": "openai"}
    assert book.price(line, request).usd == Decimal("0.00037")
    began = time.process_time()
    for _ in range(2_000):
        book.price(line, request)
    assert time.process_time() - began < 0.2  # about 0.03; the limit leaves room for a busy machine


def test_opening_the_book_with_a_warm_saved_is_quick(saved):
    Book.open().price(LINE)
    best = min(_timed(lambda: Book.open().price(LINE)) for _ in range(5))
    assert best < 0.05  # of the processor; without the saved it is many times that


def _timed(function) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began
