"""``reenact demo``: a small agent fails in a real process, and its trace shows why. Offline, no key."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from ...debugger.ending import ending
from ...demo.model_server import scripted_model, variables
from ...errors import MissingExtra, TraceFileError, UsageError
from ...extras import have
from ...recording.prompt import delta_of
from ...recording.recording import Recording
from ...tracefile.events.event_text import error_text
from ...tracefile.events.text import clean, cut, plain, seconds
from .. import run_argument
from ..output import Output
from . import ls, show

DESCRIPTION = """\
Run a small agent with three tools against a scripted model on this machine. It fails; the demo lists
the recorded run, shows it and traces the failure to its cause. No network, no key; it takes a second.

With --serve, only start the scripted model, so that you can follow the README and the tutorials with
the SDKs of Anthropic and OpenAI and without a key. It prints the variables to export."""
EXAMPLES = """\
  reenact demo                  keep the trace in a new temporary folder
  reenact demo --keep runs/     keep the trace in runs/
  reenact demo --serve          serve the scripted model until Ctrl-C
"""

_TIMEOUT = 60


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="keep the trace in this folder")
    parser.add_argument(
        "--serve", action="store_true", help="serve the scripted model on 127.0.0.1 until Ctrl-C"
    )
    parser.add_argument(
        "--port", type=run_argument.port, metavar="N", help="the port for --serve (default: one that is free)"
    )
    run_argument.add_json(
        parser, "print one JSON object: the trace and what failed; with --serve, the variables"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    if args.serve:
        return _serve(args, out)
    if args.port is not None:
        raise UsageError("--port needs --serve", hint="reenact demo --serve --port 8000")
    folder = args.keep or tempfile.mkdtemp(prefix="reenact-demo-")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    out.say("Running a hotel-booking agent in a process of its own, against a scripted model …", "dim")
    began = time.monotonic()
    path, last_words = _record(folder)
    out.say(f"It ran for {seconds(time.monotonic() - began)} and failed. Its last words:", "dim")
    out.say(f"  {plain(last_words, 200)}\n", "red")
    recording = Recording.load(path)
    if args.json:
        out.json_line(_as_dict(recording, folder))
        return 0
    _show_listing(path, out)
    _show_run(path, out)
    _show_cause(recording, out)
    _show_next(folder, out)
    return 0


def _serve(args: argparse.Namespace, out: Output) -> int:
    """Serve the scripted model until Ctrl-C; print the variables that lead the SDKs to it."""
    if args.keep is not None:
        raise UsageError("--serve records nothing, so there is nothing to --keep")
    with contextlib.ExitStack() as stack:
        try:
            base_url = stack.enter_context(scripted_model(args.port or 0))
        except OSError as error:
            raise UsageError(
                f"cannot serve on port {args.port}: {os.strerror(error.errno or 0).lower()}",
                hint="leave out --port to get one that is free",
            ) from None
        with contextlib.suppress(KeyboardInterrupt):
            _show_variables(base_url, args.json, out)
            threading.Event().wait()
    return 0


def _show_variables(base_url: str, as_json: bool, out: Output) -> None:
    out.say(
        f"A scripted model, not a real one, answers until Ctrl-C at {base_url}", "dim"
    )  # a link: no full stop
    out.say("Paste these lines into the terminal you work in:", "dim")
    names = variables(base_url)
    if as_json:
        out.json_line(names)
    else:
        for name, value in names.items():
            out.line(f"export {name}={value}")
    out.stdout.flush()


def _record(folder: str) -> tuple[str, str]:
    """Run the agent; return its trace file and the last line it wrote to stderr."""
    before = set(os.listdir(folder))
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT_")}
    env |= {"REENACT_DIR": folder, "PYTHONPATH": _own_path()}
    with scripted_model() as base_url:
        command = [sys.executable, "-m", "reenact.demo.agent", "--base-url", base_url]
        done = subprocess.run(  # noqa: S603
            command, env=env, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    new = sorted(name for name in set(os.listdir(folder)) - before if name.endswith(".jsonl"))
    words = done.stderr.strip().splitlines() or ["(nothing)"]
    if not new:
        raise TraceFileError(
            f"the demo's agent left no trace in {folder}: {words[-1]}", hint="is the folder writable?"
        )
    return os.path.join(folder, new[0]), words[-1]


def _own_path() -> str:
    """Return a search path on which the child finds this very package, installed or not."""
    import reenact

    here = os.path.dirname(os.path.dirname(os.path.abspath(reenact.__file__)))
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def _command(out: Output, *words: str) -> None:
    out.line(out.paint("$ " + clean(shlex.join(["reenact", *words])), "bold cyan"))


def _show_listing(path: str, out: Output) -> None:
    out.heading("which runs are there, and how did they end?")
    _command(out, "ls", os.path.dirname(path))
    ls.show_rows(path, out)
    out.line()


def _show_run(path: str, out: Output) -> None:
    out.heading("what happened?")
    _command(out, "show", os.path.dirname(path))
    show.show_run(path, [os.path.dirname(path)], out)
    out.line()


def _show_cause(recording: Recording, out: Output) -> None:
    """Write the failure and the messages that led to it: what was new in the last request."""
    failure = recording.event("@error")
    out.heading("why? the failure, and the last messages the model received")
    error = failure.error
    assert error is not None
    out.paragraph([("✗ ", "red"), (f"step {failure.step}: {failure.tool_name}: {error_text(error)}", "red")])
    delta = delta_of(recording, failure)
    if delta is None:
        return
    where = delta.context.request.step
    out.line(f"  The model requested it after the request at step {where}, with these new messages:")
    for message in delta.parts:
        for text in filter(str.strip, message.text.splitlines()):
            role = plain(message.role, 12)
            out.line(f"    {out.paint(role, 'bold')} {cut(plain(text, 200), out.width - len(role) - 5)}")
    out.line("  8900 a night for one hotel, 142 for the other: the first price is in cents.")
    out.line("  The model believed it and took the dearer room for the cheaper one.")
    out.line()


def _show_next(folder: str, out: Output) -> None:
    out.heading("try next (a folder stands for its newest run)")
    for words, what in (
        (["show", folder, "--event", "@error"], "the failing event in full"),
        (["messages", folder, "--turn", "3"], "the conversation as the model saw it"),
        (["debug", folder], "step back and forth from where it failed"),
        (["why", folder, "8900"], "where the wrong price came from"),
        (["doctor", folder], "is the file whole?"),
        (["view", folder], _in_browser()),
    ):
        out.line(f"  {clean(shlex.join([*_typed(), *words]))}")
        out.line(out.paint(f"      {what}", "dim"))


def _in_browser() -> str:
    """Return what the viewer is for, and how to install what it needs where that is missing."""
    missing = [name for name in ("starlette", "uvicorn") if have(name) is None]
    return "all of it in the browser" + (
        f" (first: {MissingExtra(missing[0], 'view').hint})" if missing else ""
    )


def _typed() -> list[str]:
    """Return what starts us from where the user is: after `make demo` we are not on the PATH."""
    if shutil.which("reenact"):
        return ["reenact"]
    return [sys.argv[0]] if os.path.basename(sys.argv[0]) == "reenact" else [sys.executable, "-m", "reenact"]


def _as_dict(recording: Recording, folder: str) -> dict[str, Any]:
    failure = recording.event("@error")
    return {
        "folder": folder,
        "path": recording.path,
        "run": recording.run_id,
        **ending(recording),
        "failed_at": {"step": failure.step, "tool": failure.tool_name},
    }
