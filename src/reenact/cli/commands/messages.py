"""``reenact messages``: what the model saw, as a list that can be sent again."""

from __future__ import annotations

import argparse
import base64
from typing import Any

from ...messages.rebuild import Messages, check, messages_of
from ...playback.edits.edits import read_text
from ...recording.kept_conversations import KEPT, NOT_SENT
from ...recording.recording import recording_at
from ...tracefile.events.text import arguments, clean, count, plain
from ...wire import convert
from ...wire.neutral import CommonPart, Image, Message, Text, ToolResult, ToolUse
from .. import run_argument
from ..output import Output

DESCRIPTION = """\
Show the messages of a run as the model saw them in a turn or call, or after N events (default: the end of
the run). A provider accepts the list: long texts are in full, every tool use has a result, and nothing is
invented. If the list had to be shortened, stderr says so."""
EXAMPLES = """\
  reenact messages @failed                       the whole conversation
  reenact messages trip.jsonl --turn 3           what the model saw in turn 3
  reenact messages @last --turn 3 --json         the same, ready to send again
  reenact messages @last --as openai --json      in another provider's format
  reenact messages old.jsonl -n 3 --prompt @p.txt   for an agent that recorded no prompt
"""

LINES, WIDTH = 6, 600
"""Of one text, unless all is wanted."""


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--turn", type=int, metavar="K", help="as the model saw them in turn K, counted from 1"
    )
    where.add_argument("-n", "--n", type=int, metavar="N", dest="n", help="after the first N events")
    where.add_argument("--call", metavar="ID", help="as sent in this model call, or up to this tool call")
    parser.add_argument(
        "--prompt", metavar="TEXT", help="the user's prompt if none was recorded; @FILE reads it from a file"
    )
    parser.add_argument("--strict", action="store_true", help="fail instead of shortening the list")
    parser.add_argument(
        "--as", dest="target", choices=convert.TARGETS, help="convert to this provider's format"
    )
    parser.add_argument("--full", action="store_true", help="print long texts in full")
    run_argument.add_json(
        parser, "print one JSON object: messages, tools, params, kept (not sent), findings, provider format"
    )
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    prompt = read_text(args.prompt, "--prompt")
    check(args.n, args.turn, args.call, prompt)
    recording = recording_at(args.run_address, run=args.run, blobs=args.blobs)
    messages = messages_of(recording, args.n, args.turn, args.call, prompt, args.strict)
    if args.target not in (None, "text"):
        messages = messages.to(args.target)
    try:
        if args.json:
            _show_json(messages, args.target, out)
        elif args.target == "text":
            out.line(clean(messages.to("text")).rstrip("\n"))
        else:
            _show(messages, args.full, out)
    finally:
        run_argument.report(messages.findings, out)
    return 0


def _show_json(messages: Messages, target: str | None, out: Output) -> None:
    findings = [{"code": finding.code, "message": finding.message} for finding in messages.findings]
    facts = {
        "provider": messages.provider, "model": messages.model, "key": messages.key, "findings": findings,
    }  # fmt: skip
    if target == "text":
        out.json_line({"text": messages.to("text"), **facts})
        return
    whole = {"messages": list(messages), "tools": messages.tools, "params": messages.params,
             "kept": messages.kept, "missing": messages.missing}  # fmt: skip
    out.json_line(_plain_bytes({**whole, **facts}))


def _plain_bytes(value: Any) -> Any:
    """Return the value with bytes as base64, which is how they travel."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {key: _plain_bytes(item) for key, item in value.items()}
    return [_plain_bytes(item) for item in value] if isinstance(value, list) else value


def _show(messages: Messages, full: bool, out: Output) -> None:
    both = [*messages.kept, *messages]  # together, since results are named after their uses
    conversation = convert.conversation_of(both, messages.tools, messages.params, messages.provider)
    kept = sum(len(message.parts) for message in _conversation(messages.kept, messages.provider))
    for text in conversation.system:
        _block(("system", "bold"), text, full, out)
    for message in conversation.messages:
        for part in message.parts:
            _show_part(message.role, part, full, out, NOT_SENT if kept > 0 else "")
            kept -= 1
    _show_totals(messages, len(conversation.tools), out)


def _conversation(messages: list[Any], provider: str | None) -> list[Message]:
    return convert.conversation_of(messages, [], {}, provider).messages


def _show_part(role: str, part: CommonPart, full: bool, out: Output, mark: str) -> None:
    note = "  ".join(filter(None, [mark, plain(getattr(part, "id", None) or "", 60)]))
    if isinstance(part, ToolUse):
        args = arguments(part.args, 10**6 if full else WIDTH)
        _block((f"{role} ▸", "bold blue"), f"{plain(part.name, 60)}({args})", full, out, note=note)
    elif isinstance(part, ToolResult):
        text = "\n".join(map(_text, part.parts)) or "(nothing)"
        name = plain(part.name or "tool", 60)
        head = (f"✗ {name}", "bold red") if part.failed else (f"◂ {name}", "bold blue")
        _block(head, text, full, out, note=note)
    else:
        color = "bold cyan" if role == "assistant" else "bold green"
        _block((role, color), _text(part), full, out, note=note)


def _text(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else f"[image {part.url or part.media_type or ''}]"


def _block(head: tuple[str, str], text: str, full: bool, out: Output, *, note: str = "") -> None:
    """Write the role and the first lines of a text."""
    size = f"{len(text.encode('utf-8', 'replace')):,} bytes"
    out.line(out.cells([head, (f"  {note}" if note else "", "dim"), (f"  {size}", "dim")]))
    shown = clean(text if full else text[:WIDTH])
    lines = shown.split("\n")
    kept = lines if full else lines[:LINES]
    for line in kept:
        out.line(f"  {line}".rstrip())
    if len(kept) < len(lines) or (not full and len(text) > WIDTH):
        out.line(out.paint("  … --full shows all", "yellow"))


def _show_totals(messages: Messages, tools: int, out: Output) -> None:
    provider = plain(messages.provider or "unknown provider", 40)
    model = f", {plain(messages.model, 60)}" if messages.model else ""
    kept = f" after {count(len(messages.kept), 'message')} {KEPT}" if messages.kept else ""
    total = f"{count(len(messages), 'message')}{kept}, {count(tools, 'tool')} ({provider}{model})"
    out.line(out.paint(total, "dim"))
