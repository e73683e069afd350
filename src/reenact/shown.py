"""What a notebook shows of a result.

Results live below the room that makes HTML, so they ask for it through the package's own lazy names, the one
place that knows every room.
"""

from __future__ import annotations

import sys


class ShownAsHtml:
    """Base of the results that a notebook shows as HTML when a cell ends with one."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(sys.modules[__package__].html_of(self))
