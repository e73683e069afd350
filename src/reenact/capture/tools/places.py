"""Functions of tools that the user names: ``--tools name=module:function``, for what is not found by itself.

Read by ``reenact run`` and by the recording half, so it imports next to nothing.
"""

from __future__ import annotations

from ...errors import UsageError

HINT = "write for instance --tools lookup=my_agent:handle_lookup; a method is module:Class.method"


def places_of(text: str) -> dict[str, tuple[str, str]]:
    """Return module and name of the functions in ``name=module:qualname,…``; UsageError for anything else."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, is_named, place = part.partition("=")
        module, is_function, qualname = place.partition(":")
        words = [*module.split("."), *qualname.split(".")]
        if not (name and is_named and is_function and all(word.isidentifier() for word in words)):
            raise UsageError(f"{part} names no function", hint=HINT)
        found[name.strip()] = module, qualname
    return found
