"""``reenact run``: start a program as it is, record its model calls, and end exactly as it ended."""

from __future__ import annotations

import argparse
import os
import shutil
from typing import TYPE_CHECKING, Any

from ...capture.ambient.modules import AMBIENT_VARIABLE
from ...capture.front.options import CONTENT_VARIABLE
from ...capture.runs.allowed_programs import allow, command_key
from ...capture.runs.location import default_folder
from ...capture.seams.install import ALL, HOSTS_VARIABLE, HTTP_VARIABLE, MODELS, TOOLS_OFF, TOOLS_VARIABLE
from ...capture.seams.libraries import SEAMS, SEAMS_VARIABLE
from ...capture.tools.places import places_of
from ...errors import UsageError
from ...schema import HTTP_REQUEST
from ...settings import run_settings, tool_functions
from ...supervise.command import command_line
from ...supervise.supervisor import Supervised, end_like
from ...tracefile.events.text import clean, compact, count, dump
from ...tracefile.run_files import files_beside
from ..output import Output

if TYPE_CHECKING:
    from ...recording.listing import RunRow

# The agent waits for what is imported here; what reads traces is loaded when it has ended, if it is needed.

DESCRIPTION = """\
Run a program and record its model calls, without changing it. COMMAND is a script, `-m module`, `-c code`
or any program on the PATH, with its arguments; everything after it is passed through. Processes it starts
join the run. Input, output, signals and the exit code are the program's own. At the end one line on stderr
says where the run was saved, and another what could not be recorded, if anything.

With REENACT_OFF=1 nothing is recorded. Defaults come from the environment, then from [run] in reenact.toml or
[tool.reenact.run] in pyproject.toml.

--workspace snapshots the folder an agent works on at the start, before every model call and after every tool,
in a git repository beside the run. It skips what the folder's .gitignore names. NOTHING IN IT IS REDACTED."""
EXAMPLES = """\
  reenact run agent.py --task lisbon
  reenact run --name nightly --tag env=prod -m my_agent
  reenact run pytest tests/ -k agents
  reenact run --host llm.example.com gunicorn app:app
  reenact run --ambient __main__ agent.py      a replay uses the recorded date and random numbers
  reenact run --workspace . coder.py           a fork can restore the folder at any step
  reenact show                                 show what was recorded
"""

TOOL, FRAMEWORK = "tool", "framework"
"""In ``unseen``: a tool with a function that is not watched; a framework that is not as expected."""
RESULTS_ARE_SENT = (TOOL, FRAMEWORK)
"""No gap: the results of tools are in the next request."""

UNCOVERED = 3
"""The exit code for --strict-coverage, if the program's own is 0."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run")
    parser.add_argument(
        "-m", metavar="MODULE", help="run a module, as python does (must be the last reenact option)"
    )
    parser.add_argument(
        "-c", metavar="CODE", help="run code, as python does (must be the last reenact option)"
    )
    parser.add_argument("--name", help="name of the run (default: that of the script, module or program)")
    parser.add_argument(
        "--tag", action="append", default=[], metavar="KEY=VALUE", help="metadata for ls --where"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="folder for the run (default: $REENACT_DIR or ./.reenact)"
    )
    parser.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="also treat HOST as a model provider"
    )
    parser.add_argument(
        "--record-http", choices=(MODELS, ALL), help="all: record other HTTP traffic too (default: models)"
    )
    parser.add_argument(
        "--workspace", metavar="DIR", help="snapshot this folder at every call; contents are not redacted"
    )
    parser.add_argument(
        "--ambient", metavar="MODULE,…", help="record the clock and random numbers of these modules too"
    )
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="NAME=MODULE:FUNCTION",
        help="record this function as the tool NAME, if it is not found by itself",
    )
    parser.add_argument(
        "--strict-coverage", action="store_true", help="exit with 3 if something could not be recorded"
    )
    parser.add_argument("--json", action="store_true", help="print the summary on stderr as one JSON object")


def parse(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Read our own options, and leave everything from the command on as it stands."""
    with_value = {
        flag for action in parser._actions if action.nargs is None for flag in action.option_strings
    }
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word in ("-m", "-c") or not word.startswith("-") or word == "--":
            break
        at += 2 if word in with_value else 1
    args = parser.parse_args(arguments[:at])
    args.command = arguments[at + 1 :] if arguments[at : at + 1] == ["--"] else arguments[at:]
    return args


def run(args: argparse.Namespace, out: Output) -> int:
    if not args.command:
        raise UsageError("there is nothing to run", hint="for example: reenact run agent.py")
    command = command_line(args.command)
    tags = dict(_tag(text) for text in args.tag)
    first = args.command[0]
    called = first if shutil.which(first) == command[0] else command[0]
    if os.environ.get("REENACT_OFF") == "1":
        os.execv(command[0], [called, *command[1:]])  # noqa: S606
    settings = run_settings()
    out_folder = args.out or (None if "REENACT_DIR" in os.environ else settings.get("out"))
    if out_folder is not None:
        os.environ["REENACT_DIR"] = os.path.abspath(out_folder)
    name = args.name or settings.get("name") or _name(args.command)
    workspace = args.workspace or settings.get("workspace")
    if workspace is not None:
        from ...supervise.workspace.snapshots import named_folder

        workspace = named_folder(workspace, default_folder())
    meta = {**settings.get("tags", {}), **tags}
    variables = _variables(args, settings)
    ambient = variables.get(AMBIENT_VARIABLE, os.environ.get(AMBIENT_VARIABLE))
    head: dict[str, Any] = {"ambient": ambient.split(",")} if ambient else {}
    tools = variables.get(TOOLS_VARIABLE, os.environ.get(TOOLS_VARIABLE))
    if tools and tools != TOOLS_OFF:
        head["tools"] = tools.split(",")
    agent = Supervised(command, name, meta, variables, head, workspace=workspace)
    agent.called = called
    allow(command_key(command, os.getcwd()))
    agent.run()
    inside = _look_inside(agent)
    unseen = _unseen(agent, inside[0])
    if args.json:
        out.say(dump(_as_dict(agent, unseen)))
    elif agent.is_recorded:
        _report(agent, unseen, inside, out)
    strict = args.strict_coverage or settings.get("strict_coverage", False)
    is_uncovered = any(each.get("what") not in RESULTS_ARE_SENT for each in unseen)
    if strict and (is_uncovered or not agent.is_recorded) and agent.exit == 0:
        return UNCOVERED
    return end_like(agent.exit)


def _name(words: list[str]) -> str:
    named = words[1] if words[0] == "-m" else "python" if words[0] == "-c" else words[0]
    return os.path.basename(named.rstrip("/")).removesuffix(".py") or "run"


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--tag {text} is not KEY=VALUE", hint="for example: --tag environment=prod")
    return key, value


def _variables(args: argparse.Namespace, settings: dict[str, Any]) -> dict[str, str]:
    """Return the variables for the recording half; what the environment has already stays."""
    wanted = {
        HOSTS_VARIABLE: settings.get("hosts"),
        HTTP_VARIABLE: settings.get("record_http"),
        SEAMS_VARIABLE: settings.get("seams"),
        CONTENT_VARIABLE: settings.get("content"),
        TOOLS_VARIABLE: [f"{name}={place}" for name, place in tool_functions().items()],
    }
    wanted = {name: value for name, value in wanted.items() if name not in os.environ}
    if args.host:
        wanted[HOSTS_VARIABLE] = args.host
    if args.record_http is not None:
        wanted[HTTP_VARIABLE] = args.record_http
    if args.tools:
        wanted[TOOLS_VARIABLE] = [*(wanted.get(TOOLS_VARIABLE) or ()), *args.tools]
    variables = {
        name: value if isinstance(value, str) else ",".join(_word(name, each) for each in value)
        for name, value in wanted.items()
        if value
    }
    ambient = args.ambient.split(",") if args.ambient else settings.get("ambient", ())
    if args.ambient or AMBIENT_VARIABLE not in os.environ:
        variables |= _ambient([name.strip() for name in ambient if name.strip()])
    _check_seams(variables.get(SEAMS_VARIABLE, os.environ.get(SEAMS_VARIABLE, "")))
    tools = variables.get(TOOLS_VARIABLE, os.environ.get(TOOLS_VARIABLE, ""))
    if tools != TOOLS_OFF:
        places_of(tools)
    return variables


def _word(variable: str, text: str) -> str:
    return text.strip() if variable == TOOLS_VARIABLE else text.strip().lower()


def _ambient(names: list[str]) -> dict[str, str]:
    for name in names:
        if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
            raise UsageError(
                f"--ambient {name} is not a module",
                hint="name modules of yours as Python imports them; the script itself is __main__",
            )
    return {AMBIENT_VARIABLE: ",".join(names)} if names else {}


def _check_seams(text: str) -> None:
    """Raise for a library that nobody listens to: what was to be left out would be recorded."""
    known = sorted({name if name == "http.client" else name.partition(".")[0] for name in SEAMS})
    for word in filter(None, (word.strip() for word in text.split(","))):
        if word[0] != "-" or not any(f"{name}.".startswith(f"{word[1:]}.") for name in SEAMS):
            hint = "known are -" + ", -".join(known)
            raise UsageError(f"{SEAMS_VARIABLE}: {word} is nothing to leave out", hint=hint)


def _look_inside(agent: Supervised) -> tuple[list[RunRow], bool]:
    """Return the runs inside the agent's, and whether there may be more."""
    if not files_beside(agent.path):
        return [], False
    from ...recording.runs_inside import a_look_inside

    return a_look_inside(agent.path, agent.run_id)


def _unseen(agent: Supervised, inside: list[RunRow]) -> list[dict[str, Any]]:
    """Return what was not seen; a process that only imports an SDK is none if another one made the calls."""
    is_called = any(each.get("what") == "sdk" for each in agent.unseen) and _has_calls(agent, inside)
    return [each for each in agent.unseen if not (is_called and each.get("what") == "sdk")]


def _has_calls(agent: Supervised, inside: list[RunRow]) -> bool:
    if agent.totals.turns or any(row.turns for row in inside):
        return True
    from ...recording.recording import Recording

    paths = {agent.path, *(row.path for row in inside)}
    return any(HTTP_REQUEST in Recording.load(path).event_types() for path in paths)  # embeddings: no turns


def _as_dict(agent: Supervised, unseen: list[dict[str, Any]]) -> dict[str, Any]:
    sums = agent.totals
    return {
        "id": agent.run_id if agent.is_recorded else None,
        "path": agent.path if agent.is_recorded else None,
        "status": agent.status,
        "exit": agent.exit,
        "turns": sums.turns,
        "tokens": {"in": sums.tokens_in, "out": sums.tokens_out},
        "errors": sums.errors,
        "tool_uses": agent.tool_uses,
        "unseen": unseen,
    }


def _report(
    agent: Supervised, unseen: list[dict[str, Any]], look: tuple[list[RunRow], bool], out: Output
) -> None:
    """Say where the run is and what was not seen."""
    sums = agent.totals
    words = [agent.status, count(sums.turns, "call"), f"{compact(sums.total_tokens)} tokens"]
    if sums.errors:
        words.append(count(sums.errors, "error"))
    if total := agent.tool_uses.get("total"):
        words.append(f"{agent.tool_uses.get('recorded', 0)} of {count(total, 'tool use')} recorded")
    inside, is_more = look
    if inside:
        names = ", ".join(list(dict.fromkeys(row.name for row in inside))[:3])
        words.append(f"{'at least ' if is_more else ''}{count(len(inside), 'run')} inside: {names}")
    out.say(clean(f"reenact: {_shown(agent.path)}  {', '.join(words)}"))
    texts = list(dict.fromkeys(map(_unseen_text, unseen)))
    if texts:
        more = f"; and {len(texts) - 5} more" if len(texts) > 5 else ""
        out.say(clean(f"reenact: not seen: {'; '.join(texts[:5])}{more}"))


def _unseen_text(unseen: dict[str, Any]) -> str:
    """Return a sentence for what a process could not see."""
    what = unseen.get("what")
    if what == "host":
        return f"{unseen.get('host')} was contacted in a way that is not listened to"
    if what == "process":
        return f"a Python of its own began without us: {unseen.get('command')}"
    if what == "sdk":
        return f"{unseen.get('sdk')} was imported, and no call came of it"
    if what == "seam":
        return f"calls made with {unseen.get('seam')} ({unseen.get('why')})"
    if what == FRAMEWORK:
        return f"the ids of tool calls made with {unseen.get('framework')} ({unseen.get('why')})"
    if what == TOOL:
        return f"what the tool {unseen.get('tool')} does ({unseen.get('why')})"
    return f"{what}"


def _shown(path: str) -> str:
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
