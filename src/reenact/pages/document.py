"""One page as one file: the document around its body, and how it is written to disk.

No request: the policy in its head allows the style sheet and, where there is one, the script, by their
hashes, and nothing else. The first line says that we wrote it, so that it may be written again; any other
file needs ``force``.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .. import __version__
from ..errors import UsageError
from .html import Child, Html, join, line, tag

MARKER = "<!doctype html>\n<!-- a page of reenact "
STYLE = "style.css"
"""What all pages have in common."""
VIEWER_STYLE = "viewer.css"
"""What shows a run: for the viewer and for a run as one file."""
RUNS_STYLE = "runs.css"
SCRIPTS = ("common.js", "runs.js", "viewer.js", "row_list.js", "charts.js", "playback.js")


def asset(name: str) -> str:
    """Return the text of a style sheet or script of the folder ``static``."""
    return (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


def style_hash(*names: str) -> str:
    """Return the hash by which a policy allows the style sheets, or the script, of a page."""
    digest = hashlib.sha256("".join(map(asset, names)).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def document(
    title: str,
    *body: Child,
    styles: Sequence[str] = (STYLE,),
    script: str | None = None,
    skip_to: str = "differences",
) -> str:
    """Return a whole page; its body is a ``main`` with these children, one with the id ``skip_to``."""
    pictures = "; img-src data:" if VIEWER_STYLE in styles else ""
    scripts = f"; script-src {style_hash(script)}" if script else ""
    policy = (
        f"default-src 'none'; style-src {style_hash(*styles)}{scripts}{pictures}; base-uri 'none';"
        " form-action 'none'"
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", line(title)),
        tag("style", Html("".join(map(asset, styles)))),
    )
    skip = tag("a", f"Skip to the {skip_to}", href=f"#{skip_to}", class_="skip")
    runs = tag("script", Html(asset(script))) if script else None
    whole = join(tag("head", head), "\n", tag("body", skip, tag("main", *body), runs))
    return f"{MARKER}{__version__} -->\n{tag('html', whole, lang='en')}\n"


def write_page(path: str, page: str, *, force: bool = False) -> None:
    """Write a page to a file of mode 0600, completely or not at all.

    UsageError if something else than an earlier page of ours is there, unless ``force``. No link is followed.
    """
    is_there = check_free(path, force=force)
    partial = f"{path}.{os.getpid()}.tmp"
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(page.encode("utf-8", "replace"))
        if is_there:
            os.replace(partial, path)
        else:
            os.link(partial, path)  # not over what somebody put there in the meantime
    except FileExistsError:
        raise _not_ours(path) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def check_free(path: str, *, force: bool) -> bool:
    """Return whether a file is there that may be replaced; raise UsageError if it must not be."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise UsageError(
                f"there is no folder {folder}", hint="the page is written to an existing folder"
            ) from None
        return False
    if stat.S_ISDIR(found.st_mode) or not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise UsageError(f"{path} is not a file", hint="name a file to write the page to: diff.html")
    if not force and not (stat.S_ISREG(found.st_mode) and _is_ours(path)):
        raise _not_ours(path)
    return True


def _is_ours(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(MARKER)) == MARKER.encode()


def _not_ours(path: str) -> UsageError:
    return UsageError(f"{path} exists, and is not a page of reenact", hint="--force replaces it")


def served_document(title: str, *body: Child, script: str, styles: Sequence[str] = (), **facts: str) -> str:
    """Return a page of the viewer: style sheets and the script are loaded from the server that sent it.

    ``facts`` become ``data-`` attributes of the body, for the script.
    """
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", line(title)),
        *(tag("link", rel="stylesheet", href=f"/static/{name}") for name in (STYLE, VIEWER_STYLE, *styles)),
        tag("script", src=f"/static/{script}", type="module"),
    )
    attributes = {f"data_{name}": value for name, value in facts.items()}
    whole = join(tag("head", head), tag("body", *body, class_="viewer", **attributes))
    return f"<!doctype html>\n{tag('html', whole, lang='en')}\n"
