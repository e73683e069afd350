"""HTML that cannot be broken by what stands in it: every text is cleaned and escaped unless it is ``Html``.

A trace is untrusted. Names of tags and attributes come from our code only. A link leads to a place on the
same page or to a path of our own server; an image is part of the page. ``Html`` has ``__html__``, so template
engines take it as it is.
"""

from __future__ import annotations

import re
from html import escape

from ..tracefile.events.text import clean, plain

_EMPTY = frozenset(("br", "hr", "img", "input", "link", "meta"))
_LINE = 600
_LINKS = frozenset(("href", "src", "action", "data"))
_HARMLESS = re.compile(
    r"(?:#.*|/(?![/\\]).*|data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*)\Z", re.DOTALL
)
"""A place on the page, a path of the server that sent it, or a picture that is in the page."""


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
    if key in _LINKS and not _HARMLESS.match(str(value)):
        raise ValueError(f"{key} must lead to a place of ours, not to {str(value)[:200]!r}")
    return f' {key}="{text(str(value))}"'
