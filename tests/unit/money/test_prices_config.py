"""The user's own prices, and what is said about settings that are wrong."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pytest

from reenact.errors import UsageError
from reenact.money.own_prices import own_prices
from reenact.prices import Book


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def call(model: str, **fields):
    return {"ts": 1.78e9, "kind": "llm_call", "model": model, "input_tokens": 1_000_000, **fields}


def book_with(folder: Path, text: str) -> Book:
    (folder / "reenact.toml").write_text(text)
    return Book.open(str(folder))


def test_own_prices_win_over_the_list_but_not_over_the_recorded_cost(tmp_path):
    book = book_with(tmp_path, '[prices."gpt-4o*"]\ninput = 0.5\noutput = 1.5\n')
    price = book.price(call("gpt-4o-mini", output_tokens=1_000_000))
    assert (price.usd, price.source) == (Decimal("2.0"), "own")
    assert price.parts == {"input": Decimal("0.5"), "output": Decimal("1.5")}
    reported = book.price(call("gpt-4o-mini", response_cost=7))
    assert (reported.usd, reported.source) == (7, "told")


def test_every_own_price_is_used_and_what_is_left_out_costs_as_input_or_output(tmp_path):
    text = "[prices.mine]\ninput = 1\noutput = 2\ncache_read = 0.1\ncache_write = 1.25\ncache_write_1h = 2.5\nreasoning = 3\n"
    usage = {
        "input_tokens": 1_000_000,
        "output_tokens": 3_000_000,
        "cache_read_input_tokens": 1_000_000,
        "cache_creation_input_tokens": 3_000_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1_000_000, "ephemeral_1h_input_tokens": 2_000_000},
        "output_tokens_details": {"thinking_tokens": 1_000_000},
    }
    line = {"ts": 1.78e9, "kind": "llm_call", "model": "mine", "usage": usage}
    assert book_with(tmp_path, text).price(line).parts == {
        "input": Decimal("1"),
        "output": Decimal("4"),
        "cache_read": Decimal("0.1"),
        "cache_write": Decimal("1.25"),
        "cache_write_1h": Decimal("5"),
        "output_reasoning": Decimal("3"),
    }
    plain = book_with(tmp_path, "[prices.mine]\ninput = 1\noutput = 2\n").price(line)
    assert plain.parts == {"input": Decimal("5"), "output": Decimal("6")}
    hour = book_with(tmp_path, "[prices.mine]\ninput = 1\noutput = 2\ncache_write_1h = 10\n").price(line)
    assert hour.usd == 1 + 1 + 1 + 20 + 6


def test_a_model_of_ones_own_machine_may_cost_nothing(tmp_path):
    book = book_with(tmp_path, '[prices."qwen*"]\ninput = 0\noutput = 0\n')
    price = book.price(call("qwen3:8b", provider="ollama"))
    assert (price.usd, price.source) == (0, "own")


def test_an_exact_name_wins_over_a_pattern_and_the_first_pattern_over_the_second(tmp_path):
    text = """
    [prices."my-*"]
    input = 1
    output = 0
    [prices."my-model*"]
    input = 2
    output = 0
    [prices."MY-model"]
    input = 3
    output = 0
    """
    book = book_with(tmp_path, text)
    assert book.price(call("my-model")).usd == 3
    assert book.price(call("My-Model-2")).usd == 1


def test_a_price_may_be_for_one_provider_only(tmp_path):
    import_module("genai_prices")
    text = '[prices."gpt-4o"]\nprovider = "azure"\ninput = 7\noutput = 0\n'
    book = book_with(tmp_path, text)
    azure = {
        "url": "https://mine.openai.azure.com/openai/deployments/x/chat/completions",
        "provider": "openai",
    }
    assert book.price(call("gpt-4o"), azure).source == "own"
    assert book.price(call("gpt-4o", provider="azure")).source == "own"
    assert book.price(call("gpt-4o")).source == "genai-prices"


def test_own_prices_hold_on_any_terms(tmp_path):
    book = book_with(tmp_path, '[prices."claude-*"]\ninput = 1\noutput = 1\n')
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "service_tier": "priority", "speed": "fast"}
    body = {"type": "message", "model": "claude-x", "content": [], "stop_reason": "end_turn", "usage": usage}
    assert book.price({"kind": "model.response", "body": body}).usd == 1


def test_settings_are_looked_for_upwards_and_the_nearest_count(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.reenact.prices."far"]\ninput = 1\noutput = 1\n')
    assert [own.pattern for own in own_prices(str(below))] == ["far"]
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert [own.pattern for own in own_prices(str(below))] == ["far"]
    (tmp_path / "a" / "reenact.toml").write_text('[prices."near"]\ninput = 1\noutput = 1\n')
    assert [own.pattern for own in own_prices(str(below))] == ["near"]


def test_without_a_folder_the_working_directory_counts(tmp_path, monkeypatch):
    (tmp_path / "reenact.toml").write_text('[prices."here"]\ninput = 1\noutput = 1\n')
    monkeypatch.chdir(tmp_path)
    assert [own.pattern for own in own_prices()] == ["here"]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("prices = 5", "prices is not a table"),
        ('[prices]\n"m" = 5', 'prices."m" is not a table'),
        ('[prices."m"]\noutput = 1', 'prices."m" has no input price'),
        ('[prices."m"]\ninput = 1', 'prices."m" has no output price'),
        ('[prices."m"]\ninput = "1"\noutput = 1', "prices.\"m\".input is '1', not a price"),
        ('[prices."m"]\ninput = -1\noutput = 1', 'prices."m".input is -1, not a price'),
        ('[prices."m"]\ninput = nan\noutput = 1', 'prices."m".input is nan, not a price'),
        ('[prices."m"]\ninput = true\noutput = 1', 'prices."m".input is True, not a price'),
        ('[prices."m"]\ninput = 1\noutput = 1\nouput = 2', 'prices."m".ouput is not a setting'),
        ('[prices."m"]\ninput = 1\noutput = 1\nprovider = 3', 'prices."m".provider is 3, not a name'),
        (
            '[prices."m"]\ninput = 1\noutput = 1\ncurrency = "EUR"',
            "prices.\"m\".currency is 'EUR'; only USD is known",
        ),
        ("[prices", "is not TOML: "),
        ("\0", "is not TOML: "),
    ],
)
def test_wrong_settings_are_named_with_file_and_key(tmp_path, text, printed):
    (tmp_path / "reenact.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        own_prices(str(tmp_path))
    assert str(tmp_path / "reenact.toml") in str(raised.value)
    assert printed in str(raised.value)
    # A post-mortem goes on: nothing is priced, and the book says why.
    book = Book.open(str(tmp_path))
    assert printed in book.source and book.wrong is not None
    line = {"kind": "llm_call", "model": "gpt-4o", "input_tokens": 10, "output_tokens": 1}
    assert book.price(line).usd is None and book.price(line).why == "the settings are wrong"
    usage = {"cost": 0.5, "prompt_tokens": 1, "completion_tokens": 1}
    reported = {"kind": "model.response", "body": {"model": "x", "choices": [], "usage": usage}}
    assert book.price(reported).usd == Decimal("0.5")
