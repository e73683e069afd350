"""Methods of a class replaced by ours, and given back without taking away what another tool put on top."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def replace(owner: Any, methods: dict[str, Any]) -> Callable[[], None]:
    """Put methods into a class; returns what undoes it.

    A tool that came after us has ours inside its own. Then ours stays where it is, and passes everything on
    since the watch is off.
    """
    before = {name: vars(owner)[name] for name in methods if name in vars(owner)}
    for name, method in methods.items():
        setattr(owner, name, method)

    def undo() -> None:
        for name, method in methods.items():
            if vars(owner).get(name) is not method:
                continue
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)

    return undo
