"""The model's own answers: a request that sends one back need not write it again.

Used by History. An answer is kept as compact bytes per key of the part an agent would append to its messages.
"""

from __future__ import annotations

import marshal

from ..lines import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_ANSWERS = 8
MAX_BYTES = 32 << 10
_NOT_THE_MODELS = ("user", "system", "tool", "developer")
_EXACT = 0
"""The marshal version whose bytes depend on the value alone, not on interning or sharing."""


class Answers:
    """The last answers of a run, newest last."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, str, dict[str, bytes]]] = []
        """(call, JSON pointer into the response's body, each key's exact bytes)."""

    def clear(self) -> None:
        self.parts.clear()

    def add(self, call: str, parts: list[tuple[str, dict[str, Any]]]) -> None:
        """Remember the parts of an answer whose line stands in the file as it was received."""
        for pointer, part in parts:
            try:
                exact = {key: marshal.dumps(item, _EXACT) for key, item in part.items() if type(key) is str}
            except ValueError:  # an object in it, or nested too deeply
                continue
            if sum(map(len, exact.values())) <= MAX_BYTES:
                self.parts.append((call, pointer, exact))
        del self.parts[:-MAX_ANSWERS]

    def reference(self, element: Any) -> str | None:
        """Return ``{"$answer": …}`` if the element is made of one answer's values."""
        if type(element) is not dict or not element or not self.parts:
            return None
        if element.get("role") in _NOT_THE_MODELS:
            return None
        try:
            wanted = {key: marshal.dumps(item, _EXACT) for key, item in element.items()}
        except ValueError:
            return None
        for call, pointer, exact in reversed(self.parts):
            for key, item in wanted.items():
                if exact.get(key) != item:
                    break
            else:
                at = f',"at":{dumps(pointer)}' if pointer else ""
                keys = "" if list(wanted) == list(exact) else f',"keys":{dumps(list(wanted))}'
                return f'{{"$answer":{dumps(call)}{at}{keys}}}'
        return None
