"""The agent: two tours with one neighbour, reenact coming in one of several ways, each in a process of its own.

    agent.py SIDE WAYS STATIONS URL FOLDER

After the first tour we go (`uninstall`, `unwrap`); the second shows that the neighbour is still there.
What both saw, and what the neighbour tells, is in FOLDER/<way>.json.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from sides import SIDES, Side
from tour import Tour

PATCHED = {
    "httpx": ("Client._transport_for_url", "AsyncClient._transport_for_url"),
    "httpx2": ("Client._transport_for_url", "AsyncClient._transport_for_url"),
    "http.client": ("HTTPConnection.request",),
    "urllib3.connection": ("HTTPConnection.request",),
    "aiohttp": ("ClientSession._request",),
}


def there() -> dict[str, Any]:
    """What stands in the places that we change."""
    found = {}
    for name, places in PATCHED.items():
        for place in places if name in sys.modules else ():
            kind, _, method = place.partition(".")
            found[f"{name}.{place}"] = vars(getattr(sys.modules[name], kind)).get(method)
    return found


def changed(found: dict[str, Any]) -> list[str]:
    return [place for place, value in there().items() if value is not found.get(place, value)]


def play(way: str, side: Side, stations: list[str], url: str, folder: Path) -> dict[str, Any]:
    """One way: `bare`, `clients first`, `run`, `install|wrap before|after`.

    Who comes after a neighbour that is there for a while only comes after its import.
    """
    import reenact

    how, _, when = way.partition(" ")
    tap = reenact.Tap() if how == "wrap" else None
    if when == "after":
        importlib.import_module(side.module)
    found: dict[str, Any] = {}
    if how == "install" and (when == "before" or side.is_passing):
        reenact.install()
    tour = Tour(stations, url) if side.is_passing or way in ("clients first", "wrap before") else None
    if tap and tour:
        tour.each(tap.wrap)
    with side.on(folder) as reported:
        if way == "install after" and not side.is_passing:
            found = there()
            reenact.install()
        if tour is None:
            tour = Tour(stations, url)
            tour.each(tap.wrap if tap else id)
        first = tour.go()
        if how == "install":
            reenact.uninstall()
        if tap:
            tour.each(tap.unwrap)
        left = changed(found) if way == "install after" and not side.is_passing else []
        second = tour.go()
        neighbour = reported()
    tour.end()
    return {"first": first, "second": second, "neighbour": neighbour, "not restored": left}


def main(side: str, ways: str, stations: str, url: str, parent: str) -> None:
    names = stations.split(",")
    for module in {"httpx", "httpx2", "requests", "aiohttp", "openai", "anthropic", "boto3"} & {
        name.partition(" ")[0] for name in names
    }:
        importlib.import_module(module)
    for way in ways.split(","):
        if len(ways.split(",")) > 1 and (child := os.fork()):
            assert os.waitpid(child, 0)[1] == 0, way
            continue
        folder = Path(parent) / way
        folder.mkdir(exist_ok=True)
        if way != "run":
            os.environ["REENACT_DIR"] = str(folder / "runs")
        tag = "" if side == "vcr playing" else f"@{way.replace(' ', '-')}"
        reported = play(way, SIDES[side], names, url + tag, folder)
        (folder / "told.json").write_text(json.dumps(reported, default=repr))
        if len(ways.split(",")) > 1:
            sys.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
