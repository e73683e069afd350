"""Verbs that look into events: values, arguments, results, the context window, the stored line."""

from __future__ import annotations

from typing import Any

from ... import schema
from ...compare.moments import diff_moments
from ...debugger.expressions import check_path
from ...debugger.suspects.result_rules import contradiction
from ...errors import UsageError
from ...recording.calls import Call
from ...recording.kept_conversations import NOT_SENT
from ...recording.origins import Origin
from ...recording.prompt import Context, ContextPart, context_of, delta_of
from ...tracefile.events.event import Event
from ...tracefile.events.text import compact, count
from ...wire.results import CONTRADICTED
from .session import Group, Session

INSPECT = Group("inspect")
NO_MODEL_CALL = "No model call led to this event, so there is no context."

_SIGNS = {"answer": "←", "tool": "◂", "request": "→"}
_SKIPPED = (*schema.ENVELOPE, "tot", "chain")


@INSPECT.verb("p", "[PATH|EXPR]", "a value of this event on one line: p args.q; alone all fields")
def _print(session: Session, argument: str) -> None:
    event = session.stepper.event
    if argument:
        session.view.value("", _value(session, argument))
    else:
        _fields(session, {key: value for key, value in event.stored.items() if key not in _SKIPPED})


@INSPECT.verb("pp", "[PATH|EXPR]", "the same in full")
def _print_whole(session: Session, argument: str) -> None:
    event = session.stepper.event
    session.view.pretty(_value(session, argument) if argument else event.payload)


def _value(session: Session, text: str) -> Any:
    """Return the value of an expression; a name or key that is not there is an error."""
    expr, event = session.stepper.expression(text), session.stepper.event
    value = expr(event)
    if value is None:
        check_path(expr, event)
    return value


def _fields(session: Session, fields: dict[str, Any]) -> None:
    for key, value in fields.items():
        session.view.value(str(key), value)


@INSPECT.verb("a args", "", "the arguments of this call: of a tool, or what a request asks for")
def _args(session: Session, argument: str) -> None:
    event = _begin(session)
    if event.event_type == schema.MODEL_REQUEST:
        body = event.body
        body = body if type(body) is dict else {}
        shown = {key: value for key, value in body.items() if key not in schema.LISTS}
        _fields(session, shown | {key: _messages(body[key]) for key in schema.LISTS if key in body})
        return
    args = event.args
    if args is None:
        session.view.note("This event has no arguments.")
    elif type(args) is dict:
        _fields(session, args)
    else:
        session.view.value("", args)


def _messages(value: Any) -> Any:
    return f"{count(len(value), 'message')}; ctx shows them" if type(value) is list else value


def _begin(session: Session) -> Event:
    """Return the event the current call began with."""
    stepper, event = session.stepper, session.stepper.event
    begin = stepper.caller(event) if event.event_type in _ENDS and event.args is None else None
    return event if begin is None else begin


_ENDS = (schema.MODEL_RESPONSE, schema.TOOL_RESULT)


@INSPECT.verb("rv retval", "", "what this call returned, or how it failed")
def _result(session: Session, argument: str) -> None:
    event = session.stepper.event
    if event.event_type in (schema.MODEL_REQUEST, schema.TOOL_CALLED):
        call = session.stepper.tree.call_at(event)
        end = None if call is None else session.stepper.end_of(call)
        if end is None:
            session.view.note("This call has no end in the trace.")
            return
        event = session.stepper.entries[end]
    error = event.error
    if error is not None:
        session.view.note(f"error: {error.type + ': ' if error.type else ''}{error}")
        for frame in error.frames:
            session.view.note(f"  at {frame}")
    result = event.content if event.event_type == schema.MODEL_RESPONSE else event.result
    if result is not None:
        session.view.pretty(result)
    elif error is None:
        session.view.note("This event has no result.")


@INSPECT.verb("ctx", "[MESSAGE]", "what the model saw: messages with size, share, origin; ctx 3: one in full")
def _context(session: Session, argument: str) -> None:
    context = context_of(session.stepper.recording, session.stepper.event)
    if context is None:
        session.view.note(NO_MODEL_CALL)
    elif argument:
        session.view.pretty(_one(context, argument).value)
    else:
        _rows(session, context, context.parts)
        where = session.view.address(context.request)
        sent = sum(part.is_sent for part in context.messages)
        total = f"{count(sent, 'message')} in the request at {where}"
        tokens = "" if context.tokens is None else f", {context.tokens:,} tokens as the provider counted"
        session.view.note(f"{total}{tokens}; ctx N shows one in full")
        if context.kept is not None:
            session.view.note(str(context.kept))


def _one(context: Context, argument: str) -> ContextPart:
    for part in context.parts:
        if argument == (part.role if part.number is None else str(part.number)):
            return part
    last = len(context.messages) - 1
    raise UsageError(f"the context has no message {argument!r}", hint=f"0 to {last}, system or tools")


def _rows(session: Session, context: Context, parts: list[ContextPart]) -> None:
    """Show one line per message: role, size, share and tokens by length, where it came from, its text."""
    rows = []
    for part in parts:
        share = context.share(part)
        tokens = "" if context.tokens is None else compact(round(share * context.tokens))
        origin = part.origin
        source = "" if origin is None else source_text(session, origin)
        number = "" if part.number is None else part.number
        text = " ".join(part.text[:400].split())
        role = part.role if part.is_sent else f"{part.role}, {NOT_SENT}"
        rows.append((number, role, compact(part.size), f"{share:.0%}", tokens, source, text))
    head = (">#", "role", ">chars", ">share", ">~tokens", "from", "text")
    session.view.rows(head, rows, flexible=6, less=("~tokens", "chars", "share"))
    for call in (call for part in parts if part.origin is not None for call in _others(session, part.origin)):
        session.view.note(f"✗ {contradiction(call)}")


def source_text(session: Session, origin: Origin) -> str:
    """Return where a message came from: what the events are to it, and their addresses."""
    addresses = [session.view.address(event) for event in origin.events]
    few = addresses if len(addresses) < 4 else [*addresses[:2], "…", addresses[-1]]
    sign = "✗" if _others(session, origin) else _SIGNS[origin.how]
    return f"{sign} {' '.join(few)}"


def _others(session: Session, origin: Origin) -> list[Call]:
    """Return the tool calls of an origin that returned another result than the model was sent."""
    if origin.how != "tool":
        return []
    entries = session.stepper.entries
    calls = [entries.ended_at(event) for event in origin.events if event.derived_number is None]
    return [call for call in calls if call is not None and call.verdict == CONTRADICTED]


@INSPECT.verb("delta", "", "only what is new since this lane's previous request")
def _delta(session: Session, argument: str) -> None:
    delta = delta_of(session.stepper.recording, session.stepper.event)
    if delta is None:
        session.view.note(NO_MODEL_CALL)
        return
    if delta.previous is None:
        session.view.note(
            f"The first request of its lane, {session.view.address(delta.context.request)}: all is new."
        )
    else:
        since = f"since the request at {session.view.address(delta.previous)}"
        gone = f", {count(delta.gone, 'message')} gone or changed" if delta.gone else ""
        session.view.note(f"{delta.kept} kept, {len(delta.parts)} new{gone} {since}")
    for key in delta.changed:
        session.view.note(f"{key} changed")
    if delta.parts:
        _rows(session, delta.context, delta.parts)


@INSPECT.verb("diff", "[ADDRESS]", "what the model saw there and not here, and what is new: diff turn:5")
def _diff(session: Session, argument: str) -> None:
    recording = session.stepper.recording
    then = session.stepper.entries[session.stepper.resolve(argument)] if argument else None
    session.view.moments(diff_moments(recording, then, session.stepper.event))


@INSPECT.verb("raw", "", "the line as it stands in the file")
def _raw(session: Session, argument: str) -> None:
    event = session.stepper.event
    source, offset = event.stored_in.at(event.stored_at)
    session.view.raw(source.line(offset))


@INSPECT.verb("print", "EXPR", "a value of every event that has it, as a table")
def _tabulate(session: Session, argument: str) -> None:
    if not argument:
        raise UsageError("print needs an expression", hint="print usage.output, or: print duration_ms > 1000")
    stepper, rows = session.stepper, 0
    expr = stepper.expression(argument)
    for place in stepper.entries.walk((0, -1)):
        stepper.progress(place[0], len(stepper.events))
        event = stepper.entries[place]
        value = expr(event)
        if value is not None:
            rows += 1
            session.view.row({"event": session.view.address(event), "kind": event.kind, "value": value})
    if not rows:
        session.view.note(f"No event has a value for {expr.text}.")
