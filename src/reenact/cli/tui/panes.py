"""What the panes hold: the event at the cursor, the context the model saw, and the run with its findings."""

from __future__ import annotations

from rich.text import Text

from ... import schema
from ...recording.prompt import Context, ContextPart, answer_pieces, context_of, delta_of
from ...tracefile.events.event import Event
from ...tracefile.events.text import clean, compact, count, plain, pretty_json
from ...wire.neutral import REASONING, TOOL
from ...wire.results import CONTRADICTED, result_text
from ..output import Output
from ..repl.session import Session
from ..repl.verbs_print import NO_MODEL_CALL, source_text
from ..view.events import event_lines
from ..view.summary import status_mark
from .captured import drawn

_SHOWN = 2_000
"""Characters of a message in the context pane; ``ctx N`` shows all."""

_ROLES = {"system": "magenta", "tools": "magenta", "user": "green", "assistant": "cyan", "model": "cyan"}
_OTHER_ROLE = "blue"
_SORTS = {TOOL: "blue", REASONING: "dim"}
_BESIDE = frozenset((*schema.ENVELOPE, *schema.LISTS, "tot", "chain", "frames"))


def event_text(session: Session, width: int) -> Text:
    """Return the event at the cursor: its line, how it failed, its text or values, then other fields."""
    event = session.stepper.event
    recording = session.stepper.recording

    def draw(out: Output) -> None:
        for line in event_lines(
            event,
            out,
            root=recording.first_writer,
            started=recording.started,
            address_width=1,
            is_narrow=True,
        ):
            out.line(line)
        for frame in event.error.frames if event.error is not None else ():
            out.line(out.paint(f"  at {plain(str(frame), 300)}", "dim"))
        shown = _read_out(session, event, out)
        out.line()
        fields = {key: _without_messages(value) for key, value in event.payload.items() if key not in shown}
        out.line(out.paint(pretty_json(fields), "dim"))

    return drawn(width, draw)


def _read_out(session: Session, event: Event, out: Output) -> frozenset[str]:
    """Write the part of an event that a person reads first; return the fields that are shown by then."""
    if event.event_type in (schema.MODEL_RESPONSE, schema.LLM_CALL):
        pieces = answer_pieces(event)
        for piece in pieces:
            out.line()
            out.line(out.paint(clean(piece.text), _SORTS.get(piece.sort, "")))
        return _BESIDE | ({"body", "content", "text"} if pieces else set())
    if event.event_type == schema.TOOL_CALLED and event.args is not None:
        out.pretty(event.args)
        return _BESIDE | {"args"}
    if event.event_type == schema.TOOL_RESULT and event.result is not None:
        session.view.out, before = out, session.view.out
        session.view.pretty(event.result)
        session.view.out = before
        call = session.stepper.entries.ended_at(event)
        if call is not None and call.verdict == CONTRADICTED and call.sent is not None:
            out.line(out.paint("✗ the model was sent:", "bold red"))
            out.line(out.paint(clean(result_text(call.sent.value)), "red"))
        return _BESIDE | {"result"}
    return _BESIDE


def _without_messages(value: object) -> object:
    """Return a value without the messages of a request, which stand in the context pane."""
    if type(value) is not dict:
        return value
    return {
        key: f"{count(len(inner), 'message')}, see context"
        if key in schema.LISTS and type(inner) is list
        else inner
        for key, inner in value.items()
    }


def context_text(session: Session, width: int, *, only_new: bool) -> Text:
    """Return the messages the model saw, one card each; or only those that its last request did not have."""
    recording, event = session.stepper.recording, session.stepper.event
    context = context_of(recording, event)
    if context is None:
        return Text(NO_MODEL_CALL)
    delta = delta_of(recording, event)
    new = {part.number for part in delta.parts} if delta is not None else set()
    text = Text()
    sent = sum(part.is_sent for part in context.messages)
    tokens = "" if context.tokens is None else f", {context.tokens:,} tokens"
    text.append(f"{count(sent, 'message')}{tokens}, {count(len(new), 'message')} new", "bold")
    if delta is not None and delta.gone:
        text.append(f", {count(delta.gone, 'message')} gone or changed", "bold yellow")
    text.append("\n")
    if context.kept is not None:
        text.append(f"{clean(str(context.kept))}\n", "yellow")
    for part in context.parts:
        if not only_new or part.number in new:
            text.append_text(_card(session, context, part, is_new=part.number in new, width=width))
    return text


def _card(session: Session, context: Context, part: ContextPart, *, is_new: bool, width: int) -> Text:
    color = _ROLES.get(part.role, _OTHER_ROLE)
    number = "" if part.number is None else f"{part.number} "
    origin = "" if part.origin is None else f"  {source_text(session, part.origin)}"
    facts = f"{context.share(part):.0%}  {compact(part.size)} chars{origin}"
    notes = "" if part.is_sent else "  not sent"
    head = Text(f"{number}{part.role}", f"bold {color}").append(f"  {facts}{notes}", "dim")
    head.append("  new", "bold green") if is_new and part.number is not None else None
    head.truncate(width, overflow="ellipsis")
    text = Text("\n").append_text(head).append("\n")
    shown = clean(part.text[:_SHOWN])
    text.append(shown + "\n")
    if len(part.text) > _SHOWN:
        name = part.role if part.number is None else str(part.number)
        text.append(f"… {len(part.text) - _SHOWN:,} characters more: ctx {name}\n", "dim")
    return text


def head_text(session: Session, width: int) -> Text:
    """Return the run in one line: how it ended, its size."""
    recording, tot = session.stepper.recording, session.stepper.recording.tot
    sign, style = status_mark(recording.status)
    parts = [count(tot["turns"], "turn"), count(recording.count(), "event")]
    if tot["in"] or tot["out"]:
        parts.append(f"{tot['in'] + tot['out']:,} tokens")
    if tot["err"]:
        parts.append(count(tot["err"], "error"))
    text = Text(f"{sign} {recording.status.upper()}", f"bold {style}")
    text.append(f"  {plain(recording.name, 40)}  ", "bold").append(", ".join(parts), "dim")
    if recording.error is not None:
        kind = f"{plain(recording.error.type, 60)}: " if recording.error.type else ""
        text.append(f"  {kind}{plain(str(recording.error), 300)}", "red")
    text.truncate(width, overflow="ellipsis")
    return text
