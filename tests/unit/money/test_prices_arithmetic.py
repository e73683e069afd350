"""Our arithmetic on rates is that of the price list's own package, for every model it lists."""

from __future__ import annotations

import functools
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.money.rates import PriceList
from support.examples import up_to

genai_prices = import_module("genai_prices")

from genai_prices.data import providers  # noqa: E402
from genai_prices.data_snapshot import DataSnapshot  # noqa: E402
from genai_prices.data_units import unit_data  # noqa: E402

SNAPSHOT = DataSnapshot(providers=providers, from_auto_update=False)


def names_of(match) -> list[str]:
    """What the list matches a model by: its spellings, or the beginnings of them."""
    inner = getattr(match, "or_", None) or getattr(match, "and_", None) or []
    own = [getattr(match, kind, None) for kind in ("equals", "starts_with", "contains")]
    return [name for name in own if name] + [name for each in inner for name in names_of(each)]


@functools.cache
def listed_models() -> list[tuple]:
    """(provider, model, a name that leads to it)"""
    found = []
    for provider in providers:
        for model in provider.models:
            for name in [model.id, *names_of(model.match), f"accounts/fireworks/models/{model.id}"]:
                with suppress(LookupError):
                    if SNAPSHOT.find_provider_model(name, None, provider.id, None)[1] is model:
                        found.append((provider, model, name))
                        break
    return found


WHISPER = ("whisper-large-v3", "whisper-large-v3-turbo")  # billed by the second, ten at least
CONTEXTS = [
    {},
    {"service_tier": "priority"},
    {"service_tier": "flex"},
    {"service_tier": "nonsense"},
    {"processing": "batch"},
    {"processing": "batch", "service_tier": "flex"},
    {"search_type": "fast"},
]
OFTEN_TIERED = [0, 1, 999, 99_999, 100_001, 200_000, 200_001, 272_001, 600_000, 3_000_000]
DAY = 86400


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield PriceList()


def units_of(model) -> list[str]:
    """The units the model has a price for at any time on any terms."""
    listed = model.prices if isinstance(model.prices, list) else [model.prices]
    prices = [getattr(each, "prices", each) for each in [*listed, *(model.price_variants or ())]]
    return [
        name
        for name, unit in unit_data.items()
        if name != "requests" and any(getattr(each, unit["price_key"]) is not None for each in prices)
    ]


def contains(total: str, part: str) -> bool:
    return unit_data[total]["dimensions"].items() <= unit_data[part]["dimensions"].items()


@st.composite
def calls(draw):
    which = draw(st.integers(0, len(listed_models()) - 1))
    provider, model, name = listed_models()[which]
    moments = turning_points(model)
    moment = moments[draw(st.integers(0, len(moments) - 1))] + draw(
        st.integers(-2, 2) | st.integers(-(10**8), 10**8)
    )
    context = CONTEXTS[draw(st.integers(0, len(CONTEXTS) - 1))]
    return which, moment, context, draw(counts_for(units_of(model)))


def counts_for(names: list[str]) -> st.SearchStrategy[dict[str, int]]:
    """Counts that add up: each total contains all of its parts."""
    amount = st.sampled_from(OFTEN_TIERED) | st.integers(0, 5_000_000)
    return st.fixed_dictionaries(dict.fromkeys(names, amount)).map(
        lambda own: {name: sum(own[other] for other in names if contains(name, other)) for name in names}
    )


def turning_points(model) -> list[int]:
    found = [1_780_000_000]
    for each in [*(model.prices if isinstance(model.prices, list) else ()), *(model.price_variants or ())]:
        constraint = each.constraint
        if hasattr(constraint, "start_date"):
            start = datetime.combine(constraint.start_date, datetime.min.time(), tzinfo=UTC)
            found.append(int(start.timestamp()))
        elif constraint is not None:
            for time in (constraint.start_time, constraint.end_time):
                found.append(1_780_012_800 // DAY * DAY + time.hour * 3600 + time.minute * 60)
    return found


def priced(usage, provider, name, at, context):
    return genai_prices.calc_price(
        usage,
        name,
        provider_id=provider.id,
        genai_request_timestamp=at,
        price_context=context or None,
    )


def test_all_but_a_few_models_of_the_list_are_compared():
    assert len(listed_models()) > 0.99 * sum(len(provider.models) for provider in providers)


@up_to(1500)
@given(calls())
def test_every_model_usage_day_and_context_costs_what_the_package_says(table, call):
    which, moment, context, counts = call
    provider, model, name = listed_models()[which]
    card = table.card(provider.id, name)
    if provider.id == "groq" and model.id in WHISPER:
        return
    usage = genai_prices.Usage(**counts)
    at = datetime.fromtimestamp(moment, tz=UTC)
    theirs = priced(usage, provider, name, at, context)
    ours = card.rates(float(moment), context)
    if ours is None:
        assert context
        standard = priced(usage, provider, name, at, {})
        assert theirs.total_price == standard.total_price  # they fall back on it, we say unknown
        return
    total = sum(ours.charge(counts).values(), Decimal(0))
    # An hour of audio divided by 3600 differs in the 28th digit; tokens do not differ at all.
    assert total == theirs.total_price or (
        "audio_seconds" in counts and abs(total - theirs.total_price) < 1e-20
    )


@up_to(300)
@given(
    st.fixed_dictionaries(
        {
            name: st.integers(0, 100)
            for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        }
    )
)
def test_counts_that_contradict_each_other_have_no_price_where_the_package_refuses_them(table, counts):
    card = table.card("anthropic", "claude-sonnet-4-5")
    counts["cache_write_1h_tokens"] = counts["cache_write_tokens"] // 2
    ours = card.rates(1_780_000_000.0, {}).charge(counts)
    try:
        theirs = genai_prices.calc_price(
            genai_prices.Usage(**counts), "claude-sonnet-4-5", provider_id="anthropic"
        )
    except ValueError:
        assert ours is None
    else:
        assert sum(ours.values(), Decimal(0)) == theirs.total_price


def test_a_name_leads_to_the_model_the_package_finds(table):
    at = datetime(2026, 11, 1, tzinfo=UTC)
    usage = genai_prices.Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    counts = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
    different = []
    for provider, _, name in listed_models()[::7]:
        found = table.card(provider.id, name)
        try:
            theirs = genai_prices.calc_price(
                usage, name, provider_id=provider.id, genai_request_timestamp=at
            ).total_price
        except LookupError:
            theirs = None
        ours = found and sum(found.rates(at.timestamp(), {}).charge(counts).values(), Decimal(0))
        if ours != theirs:
            different.append((provider.id, name, ours, theirs))
    assert different == []
