"""HTML that cannot be broken by what stands in it: every text is cleaned and escaped unless it is ``Html``.

A trace is untrusted. Names of tags and attributes come from our code only, and a link leads to a place on the
same page or nowhere. ``Html`` has ``__html__``, so template engines take it as it is.
"""

from __future__ import annotations

from html import escape

from ..tracefile.events.text import clean, plain

_EMPTY = frozenset(("br", "hr", "meta"))
_LINE = 600
_LINKS = frozenset(("href", "src", "action", "data"))


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


Child = str | None
"""Html as it is, any other text escaped, None as nothing."""


def text(value: str) -> Html:
    """Return a text escaped, without control characters and marks that turn the direction of writing.

    >>> text("<b>\\u202e")
    '&lt;b&gt;\\ufffd'
    """
    return value if isinstance(value, Html) else Html(escape(clean(value)))


def line(value: str) -> Html:
    """Return a text on one line, cut to what one reads; something else where nothing of it can be shown."""
    return text(plain(value, _LINE) or "(no text)")


def join(*children: Child) -> Html:
    """Return some texts one after the other."""
    return Html("".join(text(child) for child in children if child is not None))


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """Return an element. ``class_`` is its class, ``aria_label`` its ``aria-label``; None leaves one out.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    words = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in _EMPTY:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{join(*children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    key = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {key}"
    if key in _LINKS and not str(value).startswith("#"):
        raise ValueError(f"{key} must lead to a place on the page, not to {value!r}")
    return f' {key}="{text(str(value))}"'
