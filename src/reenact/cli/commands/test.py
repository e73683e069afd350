"""``reenact test``: recorded runs made into pytest tests."""

from __future__ import annotations

import argparse

from ...testgen.case import CODE, KINDS, PROMPT, TOOL_KIND
from ...testgen.generate import GeneratedTest, generate
from ...tracefile.events.text import clean
from .. import ask_permission, run_argument
from ..output import Output

DESCRIPTION = """\
Write a pytest test from a run: a small test file, and a recording beside it that answers the test. Each
assertion is one line that you may delete. The test passes as written, without a key or a network.

For a run that failed because of a bug, the test asserts the correct outcome and is marked xfail(strict=True):
once the bug is fixed it fails as XPASS, and you remove the mark. If the model caused the failure, no test of
the code can show it, so the test is one of the prompt.

  code    model and tools recorded: the code still drives the same run
  tool    model recorded, tools run: they still return the same results
  prompt  model live (--reenact=live), tools recorded: how often it succeeds

Tools that were recorded (decorated with @tap.tool, found, MCP) are answered. Any other tool would really run,
now and each time the test runs: it is listed, and no test is written unless --live-tools allows it.

Several runs make one file; runs that would make the same test are skipped. The agent and the test are run
before anything is left on disk. Exit code: 2, and nothing is written, if the code is missing, diverges from
the recording or would run a tool that is not allowed, or if the test does not pass."""
EXAMPLES = """\
  reenact test @failed                         a test that fails until the bug is fixed
  reenact test trip.jsonl -o tests/test_trip.py
  reenact test --failed                        all failed runs of the folder, each failure once
  reenact test trip --kind prompt --samples 10
  reenact test trip --entry trip:plan          the function that the run called
  reenact test trip --live-tools search        allow a tool that is not recorded to run
"""

_PROOF = {
    CODE: (
        "proves that your code still drives this run: parsing, errors, loop, prompts",
        "cannot prove that a model or a tool would answer like this today",
    ),
    TOOL_KIND: (
        "proves that the tools still return what they returned for these calls",
        "cannot prove that a model would still make them; the tools really run",
    ),
    PROMPT: (
        "shows how often the model succeeds today, by the lines you write into it",
        "needs a key and money, is skipped without --reenact=live, and one run of it proves little",
    ),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_addresses", nargs="*", metavar="RUN", help=run_argument.RUN_HELP + "; a folder")
    parser.add_argument(
        "--failed",
        action="store_true",
        help="all failed runs of these folders (default: $REENACT_DIR or ./.reenact)",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        help="what to test (default: code, or prompt if the model caused the failure)",
    )
    parser.add_argument(
        "-o", "--output", default="tests", metavar="PATH", help="folder or test file (default: tests)"
    )
    parser.add_argument(
        "--entry",
        metavar="MODULE:NAME",
        help="the function the run called, if the recording does not name it",
    )
    parser.add_argument("--samples", type=int, default=5, metavar="K", help="runs of a prompt (default 5)")
    parser.add_argument(
        "--allow-lossy", action="store_true", help="allow answers that are redacted, shortened or withheld"
    )
    run_argument.add_live_tools(
        parser, "tools that are not recorded, allowed to run, now and in the test (or 'all')"
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite an edited test or one made from another run"
    )
    parser.add_argument(
        "--no-check",
        dest="check",
        action="store_false",
        help="run neither the agent nor the test (untested)",
    )
    parser.add_argument("--json", action="store_true", help="print what was written as one JSON object")
    ask_permission.add_options(parser)
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    generated = generate(
        args.run_addresses,
        output=args.output,
        kind=args.kind,
        entry=args.entry,
        samples=args.samples,
        failed=args.failed,
        live_tools=args.live_tools,
        allow_lossy=args.allow_lossy,
        force=args.force,
        check=args.check,
        permission=ask_permission.permission_of(args, out),
        run_id=args.run,
        blobs=args.blobs,
    )
    if args.json:
        out.json_line(generated.as_dict())
    else:
        _print(generated, out)
    return 0


def _print(generated: GeneratedTest, out: Output) -> None:
    for case in generated.cases:
        if case.blame is not None:
            who, why = case.blame
            out.say(clean(f"reenact: {case.recording.name} failed; the {who} caused it: {why}"))
        if case.live:
            names = ", ".join(case.live)
            out.say(clean(f"reenact: these tools really run each time {case.name} does: {names}"))
    for kind in dict.fromkeys(case.kind for case in generated.cases):
        can, cannot = _PROOF[kind]
        out.say(f"reenact: a {kind} test {can};")
        out.say(f"reenact: it {cannot}")
    for text in [*generated.notes, *(f"skipped: {each}" for each in generated.skipped)]:
        out.say(clean(f"reenact: {text}"))
    out.say(clean(f"reenact: {generated.verdict}"))
    for path in generated.paths:
        out.line(clean(path))
