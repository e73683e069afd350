"""A made-up token for each beginning in the redactor's table."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.capture.redact import table

ROWS = [*table.TOKENS, *table.FIRST_TOKENS]
_LENGTHS = {"aws-key-id": 16, "databricks-token": 32}
_MORE = {"jwt": ".a1B2c3D4e5.x"}


def tokens_of(row: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each token of a row, and a part of it that must not stay."""
    kind, starts, letters, _, _ = row
    body = "aB3dE6gH"
    if "a-f" in letters:
        body = "0a1b2c3d4e5f6789"
    elif letters == "[A-Z0-9]":
        body = "A1B2C3D4E5F6G7H8"
    more = "." + body * 2 if kind == "sendgrid-key" else _MORE.get(kind, "")
    for start in starts.split():
        length = _LENGTHS.get(kind, 32 if start == "key-" else 48)
        yield ("12345678" if start == ":AA" else "") + start + (body * 8)[:length] + more, body[:8] * 2
