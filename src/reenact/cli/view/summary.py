"""The first and the last lines of ``show``: how a run ended and where to look; counts, money and time."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence

from ... import schema
from ...debugger.ending import died_without_a_word, ending_error, inside
from ...debugger.story import Story, time_spent
from ...debugger.suspects.suspect import MOST_SHOWN, PROVEN, Suspect
from ...money.prices import Bill, money
from ...recording.calls import Call
from ...recording.recording import Recording
from ...tracefile import status as states
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address, error_text
from ...tracefile.events.text import clean, count, cut, milliseconds, plain, seconds, width_of
from ..output import Output

_STYLES = {
    "ok": "bold green",
    "running": "bold cyan",
    "unclosed": "bold yellow",
    "unknown": "bold yellow",
    "stopped": "bold yellow",
}
_SIGNS = {"ok": "✓", "running": "●", "unclosed": "·", "unknown": "·", "cancelled": "·", "stopped": "·"}

_MEANINGS = {
    states.KILLED: "the process was killed without leaving an end record",
    states.RUNNING: "the process is alive",
    states.UNCLOSED: "the recorder was never closed; the program may have succeeded",
    states.UNKNOWN: "how it ended is not recorded",
    states.CANCELLED: "it was cancelled",
    states.STOPPED: "the process handled SIGTERM and ended",
}


def status_mark(status: str) -> tuple[str, str]:
    """Return the sign and the style of a status."""
    return _SIGNS.get(status, "✗"), _STYLES.get(status, "bold red")


def show_ending(recording: Recording, out: Output, calls: Sequence[Call]) -> None:
    """Write how the run ended, in one line and the frames below it; ``calls`` are the open ones."""
    status = recording.status
    sign, style = status_mark(status)
    error = ending_error(recording)
    words: list[str] = []
    cut_short = died_without_a_word(recording)
    if error is not None and not cut_short:
        words.append(error_text(error))
    elif status in _MEANINGS and (not cut_short or not calls):
        words.append(_MEANINGS[status])
    words += [inside(call, status, recording.first_writer) for call in calls[-4:]]
    code = _exit_text(recording.end)
    if code:
        words.append(code)
    took = _took(recording)
    if took:
        words.append(took)
    head = f"{sign} {plain(status, 20)}"
    out.paragraph([(head + "  " if words else head, style), (", ".join(words), "")])
    if calls and error is not None and cut_short:
        out.line(f"  its last error was {error_text(error)}")
    for frame in (error.frames if error is not None else [])[:3]:
        out.line(out.paint(f"    at {plain(clean(frame), out.width - 8)}", "dim"))


def show_suspects(found: Sequence[Suspect], out: Output) -> None:
    """Write the likeliest suspects, each with the event where it happened first."""
    shown = [each for each in found if each.is_shown]
    for each in shown[:MOST_SHOWN]:
        times = f" × {each.times}" if each.times > 1 else ""
        room = 2 * (out.width - 8) - width_of(times) if out.is_terminal else 500
        sign, style = ("✗", "red") if each.kind in PROVEN else ("!", "yellow")
        out.paragraph([(f"{each.address:>5} {sign} ", style), (cut(each.evidence, room) + times, style)])
    if len(shown) > MOST_SHOWN:
        more = count(len(shown) - MOST_SHOWN, "more suspect")
        out.line(out.paint(f"      … and {more}; --suspects lists them", "dim"))


def list_suspects(found: Sequence[Suspect], out: Output) -> None:
    """Write all suspects with their confidence, the whole evidence of each."""
    for each in found:
        times = f" × {each.times}" if each.times > 1 else ""
        style = "" if not each.is_shown else "red" if each.kind in PROVEN else "yellow"
        head = f"{each.address:>5}  {each.confidence:.2f}  {each.kind}: "
        out.paragraph([(head, style or "dim"), (each.evidence + times, "")])
    if not found:
        out.line("No suspects.")


def show_pointers(event: Event, turn: int, run: Sequence[str], root: str | None, out: Output) -> None:
    """Write where the failure is and the commands that look closer; ``run`` is the run as it was typed."""
    at = address(event, root)
    is_cause = event.error is not None or event.event_type in (schema.MODEL_REQUEST, schema.TOOL_CALLED)
    where = f"{'at' if is_cause else 'after'} event {at}" + (f" in turn {turn}" if turn else "")
    out.line(f"  {where}; look closer with")
    looks = [["show", *run, "--event", at], ["debug", *run]]
    if turn:
        looks.insert(1, ["messages", *run, "--turn", str(turn)])
    for words in looks:
        out.line(out.paint("    " + clean(shlex.join(["reenact", *words])), "cyan"))


def _exit_text(end: Event | None) -> str:
    code = end.exit if end is not None else None
    if type(code) is not int:
        return ""
    if code < 0:
        memory = ", the kernel killed for memory" if end is not None and end.oom_kills else ""
        try:
            return f"signal {signal.Signals(-code).name}{memory}"
        except ValueError:
            return f"signal {-code}{memory}"
    return f"exit {code}" if code else ""


def _took(recording: Recording) -> str:
    begin, end = recording.started, recording.ended
    if begin is None or end is None or not 0 <= end - begin < 1e9:
        return ""
    return f"{'so far' if recording.status == states.RUNNING else 'after'} {seconds(end - begin)}"


# Counts, money with the source of its prices, where the time went.


def show_totals(recording: Recording, story: Story, bill: Bill | None, out: Output) -> None:
    """Write the sums of a run; those that need all of it only where all of it was read."""
    tot = recording.tot
    parts = [count(tot["turns"], "turn"), count(recording.count(), "event")]
    if tot["in"] or tot["out"]:
        cached = recording.totals.cache_read if story.is_whole else 0
        read = f", {cached:,} cached" if cached else ""
        parts.append(f"{tot['in'] + tot['out']:,} tokens ({tot['in']:,} in, {tot['out']:,} out{read})")
    parts.append(count(tot["err"], "error"))
    if len(recording.writers) > 1:
        parts.append(count(len(recording.writers), "writer"))
    _show_parts(parts, out)
    if bill is not None:
        _show_cost(bill, out)
    if story.is_whole:
        _show_time(recording, story, out)
    elif tot["turns"]:
        out.paragraph(
            [("cost  ", "bold"), ("not summed up in a run of this size: ask `reenact stats`", "dim")]
        )
    end = recording.end
    lost = end.dropped if end is not None else None
    if type(lost) is int and lost > 0:
        out.line(out.paint(f"{count(lost, 'event')} could not be recorded", "red"))


def _show_parts(parts: list[str], out: Output) -> None:
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > out.width:
            out.line(out.paint(line, "bold"))
            line = part
        else:
            line += "  " + part
    out.line(out.paint(cut(line, out.width), "bold"))


def _show_cost(bill: Bill, out: Output) -> None:
    if not bill.priced and not bill.unknown:
        return

    text = bill.text()
    if bill.estimated:
        reported = f" ({money(bill.reported)} as the provider says)" if bill.reported else ""
        text += f", estimated{reported}; prices: {plain(bill.source, 100)}"
    elif bill.reported:
        text += ", as the provider says"
    why = [f"{plain(why, 80)} ({count(calls, 'call')})" for why, calls in list(bill.unknown.items())[:4]]
    if why:
        text += ("; unknown: " if bill.priced else ": ") + ", ".join(why)
    out.paragraph([("cost  ", "bold"), (text, "")])


def _show_time(recording: Recording, story: Story, out: Output) -> None:
    spent = time_spent(story.calls, recording.started, recording.ended)
    if spent is None or not story.calls:
        return
    parts = [f"{name} {milliseconds(value * 1000)}" for name, value in spent.items() if value > 0]
    out.paragraph([("time  ", "bold"), (", ".join(parts) or "none that was measured", "")])
