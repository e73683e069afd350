"""One object's method listened to: an attribute of the object in front of its class's function.

Held without a cycle, so that the object goes when it would have gone.
"""

from __future__ import annotations

from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Override:
    """What stands in the object; called as the method, it calls ``tapped(owner, original, …)``."""

    def __init__(self, owner: Any, name: str, tapped: Callable[..., Any]) -> None:
        self._owner = ref(owner)
        self._before = vars(owner).get(name)
        """What somebody else had put there already."""
        self._name = name
        self.tapped = tapped

    def original(self, owner: Any, *args: Any, **given: Any) -> Any:
        """Call what would have been called without us."""
        if self._before is not None:
            return self._before(*args, **given)
        function = getattr(type(owner), self._name)  # looked up now, since another tool may have wrapped it
        return function(owner, *args, **given)

    def __call__(self, *args: Any, **given: Any) -> Any:
        return self.tapped(self._owner(), self.original, *args, **given)

    def leave(self, owner: Any, name: str) -> None:
        if self._before is not None:
            vars(owner)[name] = self._before
        else:
            del vars(owner)[name]


def override(owner: Any, name: str, tapped: Callable[..., Any]) -> None:
    """Have ``tapped(owner, original, …)`` called for one object's method; said again, the last one holds."""
    there = vars(owner).get(name)
    if isinstance(there, Override):
        there.tapped = tapped
    else:
        vars(owner)[name] = Override(owner, name, tapped)


def restore(owner: Any, name: str) -> bool:
    """Give an object its own method back; True if it was listened to."""
    there = vars(owner).get(name)
    if not isinstance(there, Override):
        return False
    there.leave(owner, name)
    return True
