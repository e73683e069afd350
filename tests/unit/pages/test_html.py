"""HTML from any text: nothing of it is markup, nothing turns the direction of writing."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.compare.words import Words
from reenact.pages.comparison.changed_text import MOST, LeftOut, both_sides, folded, marked
from reenact.pages.html import Html, join, tag, text
from support.examples import up_to

HOSTILE = st.text("<>&\"'=/ \x00\x1b\u202e\u2066\ud800abscript\n", max_size=40)


class Reader(HTMLParser):
    """The elements and the text that a browser would find."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


@up_to(800)
@given(HOSTILE, HOSTILE)
def test_no_text_becomes_an_element_or_an_attribute(body: str, title: str) -> None:
    reader = read(tag("p", body, title=title, class_="a"))
    assert [name for name, _ in reader.found] == ["p"]
    assert [name for name, _ in reader.found[0][1]] == ["title", "class"]
    assert not {"\x00", "\x1b", "\u202e", "\u2066", "\ud800"} & set(reader.text)


def test_html_is_taken_as_it_is_and_none_as_nothing() -> None:
    assert join(Html("<b>"), "<b>", None) == "<b>&lt;b&gt;"
    assert tag("p", hidden=True, name=None, checked=False) == "<p hidden></p>"
    assert tag("input", name="q") == '<input name="q">'
    assert Html("<b>").__html__() == "<b>" and text(Html("&")) == "&"


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)", "https://example.com", "//x", " #a", "data:text/html,x", "/\\x", "x",
        "data:image/svg+xml;base64,PHN2Zy8+", "data:image/png;base64,a'><b>",
    ],
)  # fmt: skip
def test_a_link_leads_to_a_place_of_ours_or_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="must lead to a place of ours"):
        tag("a", "x", href=target)
    assert tag("a", "x", href="#d1") == '<a href="#d1">x</a>'


def test_changed_words_are_marked_on_their_side() -> None:
    left, right = both_sides("a <red> car", "a <blue> car", LeftOut())
    assert left == "<pre>a &lt;<del>red</del>&gt; car</pre>"
    assert right == "<pre>a &lt;<ins>blue</ins>&gt; car</pre>"


def test_what_is_cut_is_counted_and_what_is_folded_is_there() -> None:
    left_out = LeftOut()
    shown = read(folded("x" * (MOST + 7), left_out)).text
    assert shown.count("x") == MOST and "7 more characters" in shown
    assert left_out.notes == [f"7 characters of texts longer than {MOST:,}"]
    lines = "\n".join(map(str, range(100)))
    page = folded(lines, left_out)
    assert "<details>" in page and read(page).text.replace("\n", "").startswith("012345")
    assert all(str(number) in page for number in range(100)) and left_out.characters == 7


def test_a_long_stretch_that_stayed_is_shortened_around_the_change() -> None:
    page = read(marked([Words("same", "a" * 5_000), Words("gone", "GONE"), Words("same", "b" * 5_000)])).text
    assert "4,840 equal characters" in page and "aGONEb" in page and len(page) < 1_000
