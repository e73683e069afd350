"""The ``reenact`` command: finds the command, imports only that, and answers with an exit code.

0 fine, 1 a difference or failure was found, 2 usage or unusable input; ``run`` ends as the agent does.
Never a traceback, unless REENACT_DEBUG asks for it.
"""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import NoReturn

from ..errors import NotAllowed, ReenactError
from ..tracefile.events.text import clean
from .output import Output, terminal_size

COMMANDS = {
    "demo": "a ten-second tour: an agent that fails, recorded and explained (offline, no key)",
    "run": "record an agent without changing it: `reenact run agent.py`",
    "ls": "list the runs in a folder, newest first",
    "show": "how a run ended, and what happened in it",
    "diff": "where two runs differ, and why",
    "messages": "what the model saw, as a list that can be sent again",
    "debug": "step through a run, forwards and backwards, with the commands of pdb",
    "why": "where a text, a value or a failure came from, and which claims have a source",
    "view": "look at runs in the browser: events, context, failure (this machine only)",
    "export": "a run as one HTML file to send to a colleague",
    "replay": "run an agent again; the recording answers its model calls",
    "fork": "run an agent up to a call, change something there, and continue live",
    "test": "turn a recorded run into a pytest test",
    "cat": "print a run's events, as stored or in full",
    "tail": "print a run's events as they are written",
    "grep": "search the events and long texts of runs",
    "stats": "calls, tokens, money, durations and errors of many runs",
    "doctor": "check a trace file for damage and report what is still readable",
}

OK, FOUND, UNUSABLE = 0, 1, 2
INTERRUPTED = 130
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

_TOP = """\
RUN is a path, id prefix, name, @last, @prev or @failed (default @last, in $REENACT_DIR or ./.reenact).
The newest replay is @replay, the newest fork @fork. Data goes to stdout, messages to stderr.

examples:
  reenact demo                 a ten-second tour
  reenact ls --failed          which runs failed
  reenact show @failed         how the newest of them ended
  reenact diff @prev @last     where two runs differ, and why
  reenact debug @failed        step back from where it failed
  reenact run agent.py         record your agent without changing it
  reenact show trip.jsonl      show a file
  reenact replay @failed       run it again without the model
  reenact test @failed         a test that fails until the bug is fixed

`reenact COMMAND --help` explains a command.
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs to the terminal; those with indented lines (examples, tables) stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_size()[0] - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            paragraph
            if "\n  " in f"\n{paragraph}"
            else textwrap.fill(paragraph, width, break_on_hyphens=False)
            for paragraph in paragraphs
        )


class Parser(argparse.ArgumentParser):
    """argparse with our layout of help and of errors."""

    def __init__(self, prog: str, description: str, examples: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog="examples:\n" + examples,
            formatter_class=_Help,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        sentence = message[:1].upper() + message[1:]
        self.exit(UNUSABLE, clean(f"{sentence}.\n\nhint: `{self.prog} --help` shows what it takes\n"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    out = Output()
    gc.set_threshold(100_000)  # events are kept or freed as we go: looking for garbage would find none
    try:
        code = _dispatch(arguments, out)
        out.stdout.flush()
        return code
    except SystemExit as end:  # argparse: --help or a wrong argument
        return end.code if isinstance(end.code, int) else UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()
        return OK
    except NotAllowed as why:
        return refuse(out, why, arguments)
    except (ReenactError, OSError) as why:
        return complain(out, why)
    except MemoryError:
        out.say("There is not enough memory to read this at once. No file was changed.")
        out.say("\nhint: `reenact cat` passes events on without holding them")
        return UNUSABLE
    except Exception as fault:
        return own_fault(out, fault)


def complain(out: Output, why: ReenactError | OSError, *, gap: str = "\n") -> int:
    """Say on stderr what is wrong with the input and, after a gap, what to do; return the exit code."""
    out.say(clean(sentence(why)))
    hint = getattr(why, "hint", None)
    if hint:
        out.say(f"{gap}hint: {clean(str(hint))}")
    return UNUSABLE


def refuse(out: Output, why: NotAllowed, arguments: Sequence[str]) -> int:
    """Say on stderr what a command would do unasked, and how to allow it; return the exit code."""
    import shlex

    at = arguments.index("--") if "--" in arguments else len(arguments)
    command = shlex.join(["reenact", *with_flags(arguments[:at], why.flags), *arguments[at:]])
    out.say(clean(f"{why}\n\nto allow all of it:\n{command}"))
    if why.advice:
        out.say(clean(f"\nhint: {why.advice}"))
    return UNUSABLE


def with_flags(arguments: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Return the words of a command with more flags; the tools that two flags name go into one.

    >>> with_flags(["replay", "--live-tools", "b", "trip"], ["--live-tools", "a", "--yes"])
    ['replay', 'trip', '--live-tools', 'a,b', '--yes']
    """
    from ..playback.refusal import LIVE_TOOLS

    if LIVE_TOOLS not in flags:
        return [*arguments, *flags]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(LIVE_TOOLS, action="append", default=[])
    known, rest = parser.parse_known_args([*arguments, *flags])
    at = len(rest) - len(flags) + 2
    names = sorted({name.strip() for text in known.live_tools for name in text.split(",")})
    return [*rest[:at], LIVE_TOOLS, ",".join(names), *rest[at:]]


def sentence(why: ReenactError | OSError) -> str:
    """Return what went wrong as one sentence."""
    if isinstance(why, ReenactError):
        return str(why)
    reason = (why.strerror or str(why) or type(why).__name__).lower()
    verb = "written" if why.errno in _NOT_WRITTEN else "read"
    return (
        f"{why.filename} cannot be {verb} ({reason})" if why.filename else f"this cannot be done ({reason})"
    )


def _dispatch(arguments: list[str], out: Output) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        if len(arguments) > 1 and arguments[1] in COMMANDS:
            return _dispatch([arguments[1], "--help"], out)
        _help(out)
        return OK if arguments else UNUSABLE
    if arguments[0] in ("-V", "--version"):
        from .. import __version__

        out.line(f"reenact {__version__}")
        return OK
    name = arguments[0]
    if name not in COMMANDS:
        return _unknown(name, out)
    module = importlib.import_module(f".commands.{name}", __package__)
    parser = Parser(f"reenact {name}", module.DESCRIPTION, module.EXAMPLES)
    module.configure(parser)
    parse = getattr(module, "parse", Parser.parse_intermixed_args)
    code: int = module.run(parse(parser, arguments[1:]), out)
    return code


def _help(out: Output) -> None:
    out.line("usage: reenact COMMAND …\n")
    out.line("The flight recorder and time-travel debugger for LLM agents.\n")
    out.line("commands:")
    for name, what in COMMANDS.items():
        out.line(f"  {name:8} {what}")
    out.line()
    out.stdout.write(_TOP)


def _unknown(name: str, out: Output) -> int:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, 1, 0.5)
    if name.startswith("-"):
        out.say(clean(f"There is no option {name} before a command."))
    else:
        out.say(clean(f"There is no command {name!r}."))
    if near:
        out.say(f"\nhint: did you mean `reenact {near[0]}`?")
    elif os.path.exists(name):
        out.say(clean(f"\nhint: `reenact show {name}` shows a file"))
    else:
        out.say(f"\nhint: the commands are {', '.join(COMMANDS)}")
    return UNUSABLE


def _give_up_stdout() -> None:
    """The reader of our output is gone; keep the interpreter from complaining when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass


def own_fault(out: Output, fault: Exception) -> int:
    if os.environ.get("REENACT_DEBUG"):
        import traceback

        traceback.print_exc(file=out.stderr)
    reason = clean(f"{type(fault).__name__}: {fault}")[:300]
    out.say(f"reenact met a fault of its own ({reason}). No file was changed.")
    out.say("\nhint: please report it; with REENACT_DEBUG=1 the same command says where it is")
    return UNUSABLE
