"""Texts as a person gives them to a command: as they are, or ``@FILE``."""

from __future__ import annotations

from ...errors import UsageError


def read_text(told: str | None, flag: str) -> str | None:
    """Return the text; of ``@FILE`` what the file holds, of ``@@…`` all but the first character."""
    if told is None or not told.startswith("@"):
        return told
    if told.startswith("@@"):
        return told[1:]
    path = told[1:]
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as why:
        raise UsageError(f"{flag}: {path} is no UTF-8 text", hint="@FILE reads a text file") from why
    except OSError as why:
        reason = why.strerror or type(why).__name__
        raise UsageError(
            f"{flag}: {path!r} cannot be read: {reason}", hint="a text that begins with @ is written @@…"
        ) from why
