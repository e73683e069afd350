"""Word-level differences: both texts can be read back from them, and no word is cut in two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.compare.words import GONE, NEW, SAME, similarity, word_changes
from support.examples import up_to

TEXTS = st.text("ab .\n é", max_size=60) | st.text(max_size=60)


def side(changes, left_out):
    return "".join(words.text for words in changes if words.sort != left_out)


@up_to(800)
@given(TEXTS, TEXTS)
def test_both_texts_are_read_back_and_equal_ones_have_no_change(old, new):
    changes = word_changes(old, new)
    assert (side(changes, NEW), side(changes, GONE)) == (old, new)
    assert all(words.sort == SAME for words in word_changes(old, old))
    assert all(words.text for words in changes)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("recall the car", "recalls the car", [(GONE, "recall"), (NEW, "recalls")]),
        ("the red old car", "the blue new car", [(GONE, "red old"), (NEW, "blue new")]),
        ("82 EUR", "82 USD", [(GONE, "EUR"), (NEW, "USD")]),
        ("one two", "one two three", [(NEW, " three")]),
        ("one two", "one  two", [(NEW, " ")]),
    ],
)
def test_whole_words_are_gone_and_new(old, new, changed):
    assert [tuple(words) for words in word_changes(old, new) if words.sort != SAME] == changed


def test_one_word_in_a_long_text_is_found_line_by_line():
    lines = [f"line {number} of the log is unremarkable" for number in range(3_000)]
    edited = [
        line.replace("unremarkable", "odd") if number in (7, 2_990) else line
        for number, line in enumerate(lines)
    ]
    changes = word_changes("\n".join(lines), "\n".join(edited))
    assert [tuple(words) for words in changes if words.sort != SAME] == [
        (GONE, "unremarkable"),
        (NEW, "odd"),
    ] * 2


def test_what_repeats_itself_without_end_is_compared_as_a_whole():
    """difflib would need minutes."""
    old, new = "ha " * 6_000 + "x", "y " + "ha " * 6_000
    changes = word_changes(old, new)
    assert (side(changes, NEW), side(changes, GONE)) == (old, new) and len(changes) < 9


def test_similarity_is_by_words():
    assert similarity("a b c", "a b c") == 1 and similarity("", "") == 1
    assert similarity("a b c d", "x y z") == 0 and 0.5 < similarity("a b c d", "a b c x") < 1
