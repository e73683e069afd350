"""Play a cell and tell, as plain JSON, what the user's code saw and what the provider received."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import io
import pprint
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from support.provider import Provider, Received

from . import offline
from .table import Cell, Site, untouched

VOLATILE = re.compile(
    r"0x[0-9a-f]{6,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<=boundary=)[0-9a-f]{32}|(?<=--)[0-9a-f]{32}|(?<=cancel scope )[0-9a-f]+"
)
VOLATILE_HEADERS = {"amz-sdk-invocation-id", "x-amz-date", "idempotency-key"}
POLL = 0.001
PATIENCE = (1.0, 4.0, 16.0)


def play(
    cell: Cell, provider: Provider, hand: Callable[[Any], Any] = untouched, patience: float = 1.0
) -> dict[str, Any]:
    """One run of a cell: what was seen, raised and printed, and the requests at the provider.

    `hand` gets every client the case makes and gives it back, wrapped or not.
    """
    provider.reset()
    plain = Plain(provider.port)
    site = cell.site(provider.url(cell.scenario), hand, patience)
    reported = play_at(cell, site, plain, lambda: bool(provider.log))
    return {**reported, "requests": plain.requests(provider.settled())}


def play_at(cell: Cell, site: Site, plain: Plain, arrived: Callable[[], bool]) -> dict[str, Any]:
    """What is seen, raised and printed where somebody answers; `arrived` says whether a request is there."""
    assert cell.play is not None
    printed = io.StringIO()
    with offline.guarded(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        seen = _watch(cell, site, arrived)
    return {**plain.value(seen), "printed": plain.text(printed.getvalue())}


def play_both(
    cell: Cell, provider: Provider, hand: Callable[[Any], Any] = untouched
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A bare run and one with its clients handed over.

    If a short timeout was too short they are played again with more patience.
    """
    for patience in PATIENCE:
        bare = play(cell, provider, patience=patience)
        handed = play(cell, provider, hand, patience)
        if not is_to_be_repeated(cell, bare, handed):
            break
    return bare, handed


def is_to_be_repeated(cell: Cell, bare: dict[str, Any], handed: dict[str, Any]) -> bool:
    """True if a busy machine alone may make the difference between two plays.

    A timeout strikes too early, or a library closes a connection that has been idle for some seconds.
    """
    if cell.outcome == "timeout":
        return bare != handed or was_too_short(cell, handed)
    return bare != handed and _without_connections(bare) == _without_connections(handed)


def _without_connections(played: dict[str, Any]) -> dict[str, Any]:
    requests = [
        {name: value for name, value in each.items() if name != "connection"} for each in played["requests"]
    ]
    return {**played, "requests": requests}


def difference(bare: dict[str, Any], handed: dict[str, Any]) -> str:
    """Return the lines in which two plays differ."""
    lines = (pprint.pformat(each, width=120).splitlines() for each in (bare, handed))
    return "\n".join(line for line in difflib.ndiff(*lines) if line[:1] in "-+")


def was_too_short(cell: Cell, played: dict[str, Any]) -> bool:
    """True if the timeout of a cell struck before the provider had the request, as on a busy machine it may."""
    return cell.outcome == "timeout" and not played["requests"]


def _watch(cell: Cell, site: Site, arrived: Callable[[], bool]) -> dict[str, Any]:
    chunks: list[Any] = []
    seen: dict[str, Any] = {"chunks": chunks} if cell.shape == "stream" else {}
    try:
        returned = cell.play(site)  # type: ignore[misc]
        if cell.mode == "sync":
            result = _consume(returned, chunks, cell.outcome) if cell.shape == "stream" else returned
        elif cell.shape == "stream":
            result = asyncio.run(_aconsume(returned, chunks, cell.outcome))
        else:
            result = asyncio.run(_await(returned, cell.outcome, arrived))
        if cell.shape == "plain":
            seen["result"] = result
    except (Exception, asyncio.CancelledError) as error:
        seen["raised"] = error
    return seen


def _consume(stream: Generator[Any, None, None], chunks: list[Any], outcome: str) -> None:
    with contextlib.closing(stream):
        for chunk in stream:
            chunks.append(chunk)
            if outcome == "abandoned":
                break


async def _aconsume(stream: AsyncGenerator[Any, None], chunks: list[Any], outcome: str) -> None:
    if outcome != "cancelled":
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                chunks.append(chunk)
                if outcome == "abandoned":
                    break
        return
    task = asyncio.ensure_future(_aconsume(stream, chunks, "ok"))
    while not chunks and not task.done():
        await asyncio.sleep(POLL)
    task.cancel()
    await task


async def _await(call: Coroutine[Any, Any, Any], outcome: str, arrived: Callable[[], bool]) -> Any:
    if outcome != "cancelled":
        return await call
    task = asyncio.ensure_future(call)
    while not arrived() and not task.done():
        await asyncio.sleep(POLL)
    task.cancel()
    return await task


class Plain:
    """Any value as JSON, without what differs from run to run."""

    def __init__(self, *ports: int) -> None:
        self._ports = [str(port) for port in ports]

    def text(self, text: str) -> str:
        for port in self._ports:
            text = text.replace(f":{port}", ":<port>").replace(f"port={port}", "port=<port>")
        return VOLATILE.sub("<volatile>", text)

    def value(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes | bytearray):
            return {"bytes": self.text(bytes(value).decode("latin-1"))}
        if isinstance(value, dict):
            return {str(key): self.value(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        if isinstance(value, BaseException):
            return self.error(value)
        return {"type": _name(type(value)), **self._fields(value)}

    def _fields(self, value: Any) -> dict[str, Any]:
        if hasattr(value, "model_dump"):
            return {"fields": self.value(value.model_dump(warnings=False))}
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return {"fields": {name: self.value(getattr(value, name)) for name in names}}
        return {"repr": self.text(repr(value))}

    def error(self, error: BaseException) -> dict[str, Any]:
        """An exception with those it came from."""
        reported: dict[str, Any] = {"type": _name(type(error)), "text": self.text(str(error))}
        for name in ("cause", "context"):
            earlier = getattr(error, f"__{name}__")
            if earlier is not None:
                reported[name] = self.error(earlier)
        for name in ("status_code", "request_id", "body", "code"):
            if hasattr(error, name):
                reported[name] = self.value(getattr(error, name))
        return reported

    def requests(self, log: list[Received]) -> list[dict[str, Any]]:
        """What the provider received; connections numbered in the order they appear."""
        numbers: dict[int, int] = {}
        return [
            {
                "connection": numbers.setdefault(received.connection, len(numbers) + 1),
                "line": f"{received.method} {received.target}",
                "headers": [[name, self._header(name.lower(), value)] for name, value in received.headers],
                "body": self.text(received.body.decode("latin-1")),
                "status": received.status,
                "left": received.left,
            }
            for received in log
        ]

    def _header(self, name: str, value: str) -> str:
        signed = name == "authorization" and value.startswith("AWS4")
        return "<volatile>" if signed or name in VOLATILE_HEADERS else self.text(value)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
