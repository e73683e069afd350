"""Verbs that explain: where a text or a value came from, and what used it later."""

from __future__ import annotations

from ...debugger.debugger import Debugger
from .session import Group, Session

WHY = Group("explain")


def _debugger(session: Session) -> Debugger:
    """Return what answers for the run as it is read now; its index is kept for the next question."""
    recording = session.stepper.recording
    if session.debugger is None or session.debugger.recording is not recording:
        session.debugger = Debugger(recording)
        session.debugger.explainer.progress = session.stepper.progress
    return session.debugger


@WHY.verb(
    "why",
    "[TEXT|ADDRESS|PATH]",
    "where it came from: why 'text', why 12, why args.city; alone: this event",
)
def _why(session: Session, argument: str) -> None:
    event = session.stepper.event
    found = _debugger(session).why(_here(session, argument) if argument else event)
    session.done_looking()
    session.view.why(found)


def _here(session: Session, argument: str) -> str:
    """Return a question with the path of a value of this event made whole: ``args.city``."""
    first = argument.partition(".")[0].partition("[")[0]
    if first not in ("args", "result", "error", "content", "body", "messages") or " " in argument:
        return argument
    event = session.stepper.event
    if first == "args" and event.args is None:
        event = session.stepper.caller(event) or event
    return f"{session.view.address(event)}.{argument}"


@WHY.verb("uses", "[ADDRESS]", "later requests, arguments and texts with what this event brought")
def _uses(session: Session, argument: str) -> None:
    stepper = session.stepper
    event = stepper.entries[stepper.resolve(argument)] if argument else stepper.event
    found = _debugger(session).uses(event)
    session.done_looking()
    session.view.uses(found)
