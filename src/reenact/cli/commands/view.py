"""``reenact view``: runs as pages in the browser, served on this machine only."""

from __future__ import annotations

import argparse
import os
import webbrowser

from ...extras import need
from ...recording.run_addresses import default_folder, locate
from ...tracefile.events.text import clean
from .. import run_argument
from ..output import Output

DESCRIPTION = """\
Show runs in the browser: the list of runs, and each run with its events, the context the model saw, and the
failure it opens at. The server listens on 127.0.0.1 only, answers only who has the address with its token,
and never writes. Needs the extra `view`. Ctrl-C ends it."""
EXAMPLES = """\
  reenact view                      the runs in $REENACT_DIR or ./.reenact
  reenact view @failed              the newest run that failed, at its failure
  reenact view runs/                the runs of a folder
  reenact view trip.jsonl --no-open print the address only
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", nargs="?", metavar="RUN|DIR", help="a folder of runs, or a run: " + run_argument.RUN_HELP
    )
    parser.add_argument(
        "--port", type=run_argument.port, metavar="N", help="the port (default: one that is free)"
    )
    run_argument.add_json(parser, "print the address as a JSON object")
    parser.add_argument("--no-open", action="store_true", help="print the address, open no browser")


def run(args: argparse.Namespace, out: Output) -> int:
    need("starlette", extra="view")
    need("uvicorn", extra="view")
    from ...viewer.server import serve

    place, chosen = _place(args.place)

    def opened(address: str) -> None:
        out.json_line({"address": address}) if args.json else out.line(address)
        out.stdout.flush()
        is_open = not args.no_open and _open_browser(address)
        out.say(
            "Ctrl-C ends it."
            if is_open or args.no_open
            else "Open this address in a browser. Ctrl-C ends it.",
            "dim",
        )

    serve(place, args.port or 0, opened, chosen)
    return 0


def _place(text: str | None) -> tuple[str, tuple[str, str | None] | None]:
    """Return the folder whose runs are shown, and the run to open if one was named."""
    if text is None or os.path.isdir(text):
        place = text or default_folder()
        run_argument.files_of([text] if text else [])  # says so if there is no such folder
        return place, None
    path, run = locate(text)
    return os.path.dirname(path) or ".", (path, run)


def _open_browser(address: str) -> bool:
    try:
        return webbrowser.open(clean(address))
    except (webbrowser.Error, OSError):
        return False
