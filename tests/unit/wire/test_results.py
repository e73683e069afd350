"""What a tool returned beside what the model was sent: which difference is only another form."""

from __future__ import annotations

import pytest

from reenact.wire.results import CONTRADICTED, OTHER_FORM, SAME, compare_error, compare_result

LONG = "line one of a long result\n" * 40
MCP = {"content": [{"type": "text", "text": "882"}], "isError": False}


@pytest.mark.parametrize(
    ("returned", "sent", "verdict"),
    [
        ("900 EUR", "900 EUR", SAME),
        ("900 EUR\n", [{"type": "text", "text": "900 EUR"}], SAME),
        ({"a": 1, "b": [2]}, '{"b": [2], "a": 1}', SAME),
        ({"a": True}, "{'a': True}", SAME),  # str() of a dict
        (12, "12", SAME),
        (None, "null", SAME),
        (None, "", SAME),
        (MCP, "882", SAME),
        ("882", {"result": "882"}, SAME),  # Gemini
        ({"n": 1}, {"output": {"n": 1}}, SAME),
        ("900 EUR", "The price is 900 EUR.", OTHER_FORM),
        (LONG, LONG[:100] + " … (truncated)", OTHER_FORM),
        (None, "done", OTHER_FORM),
        (True, "yes", OTHER_FORM),
        ({"a": 1, "b": 2}, '{"a": 1}', OTHER_FORM),
        ({"city": "Oslo"}, "city: Oslo", OTHER_FORM),
        ({"$repr": "<Price 900>", "type": "Price"}, "900 EUR", OTHER_FORM),
        ("900 EUR", "120 EUR", CONTRADICTED),
        (12, "13", CONTRADICTED),
        (MCP, "883", CONTRADICTED),
        ("882", {"result": "883"}, CONTRADICTED),
        ({"city": "Oslo", "eur": 900}, '{"city": "Rome", "eur": 120}', CONTRADICTED),
        ([{"id": 1}], '[{"id": 2}]', CONTRADICTED),
        (False, "true", CONTRADICTED),
    ],
)
def test_verdict(returned: object, sent: object, verdict: str) -> None:
    assert compare_result(returned, sent) == verdict


def test_an_error_is_sent_if_its_text_or_its_mark_is() -> None:
    assert compare_error("no such row", "Error: no such row", failed=False) == SAME
    assert compare_error("no such row", "it failed", failed=True) == SAME
    assert compare_error("no such row", "it failed", failed=False) == OTHER_FORM
