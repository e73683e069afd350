"""Answers of ``why`` and ``uses`` as text for a terminal of any width, and as JSON."""

from __future__ import annotations

from typing import Any

from ...explain.claims import ALL, CITED, SUPPORTED, UNSUPPORTED, Claims, Support
from ...explain.uses import Use, Uses
from ...explain.why import CANNOT_TELL, FOUND, LINK, QUESTION, Chain, Step, Why
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address, describe
from ...tracefile.events.text import count, cut, plain, short_json, width_of
from ..output import Cell, Output

_MOST_CHAINS = 6
"""Of one answer, unless it is printed as JSON."""
_STYLE = {FOUND: "green", CANNOT_TELL: "yellow"}
_BEFORE, _TEXT = 10, 4_000
"""Characters shown before the place of a text, and of a text in JSON."""


def show_why(why: Why, root: str | None, out: Output) -> None:
    """Write the chains of an answer, one block each."""
    if why.event is not None:
        found = describe(why.event)
        words = f"{found.text}  {found.error}".strip()
        out.line(out.paint(cut(f"{address(why.event, root)}  {words}", out.width), "bold"))
    if not why.chains:
        out.line("Nothing in this event can be followed back.")
    shown, hidden = why.chains[:_MOST_CHAINS], why.chains[_MOST_CHAINS:]
    for number, chain in enumerate(shown):
        if number or why.event is not None:
            out.line()
        _show_chain(chain, root, out, is_first=number == 0)
    if hidden:
        out.line()
        out.line(f"{count(len(hidden), 'more value')}; --json has them all")


def _show_chain(chain: Chain, root: str | None, out: Output, *, is_first: bool) -> None:
    """Write one chain; only the first one goes beyond the producer of its text."""
    name = f"{plain(chain.path, 40)} = " if chain.path else ""
    text = short_json(chain.text, 200)
    out.line(cut(f"{name}{text}", out.width))
    out.paragraph(
        [(f"{chain.verdict}: ", _STYLE.get(chain.verdict, "yellow")), (plain(chain.reason, 300), "")]
    )
    if not chain.steps:
        return
    end = next((n for n, step in enumerate(chain.steps, 1) if step is chain.producer), 0)
    steps = chain.steps if is_first or not end else chain.steps[: end + 1]
    rows = [_row(step, number, chain, root) for number, step in enumerate(steps)]
    out.table(("", ">at", "what", "found by", "text"), rows, flexible=4, less=("found by",))
    if chain.also:
        places = ", ".join(address(event, root) for event in chain.also[:8])
        more = ", …" if len(chain.also) > 8 else ""
        out.line(out.paint(f"the same text is also in {places}{more}", "dim"))


def _row(step: Step, number: int, chain: Chain, root: str | None) -> list[Cell]:
    is_producer = step is chain.producer
    how = (
        "" if step.how == QUESTION else step.how if step.how == LINK else f"{step.how} {step.confidence:.2f}"
    )
    what = plain(step.what + (", first" if is_producer and number else ""), 30)
    style = "bold" if is_producer else ""
    tool = f"{plain(step.event.tool_name, 40)}: " if step.what in _OF_TOOL and step.event.tool_name else ""
    return [
        ("←" if number else "", "dim"),
        (address(step.event, root), style),
        (what, style),
        (how, "dim"),
        (tool + excerpt(step.text, step.span), style),
    ]


_OF_TOOL = ("tool result", "tool error", "argument")


def excerpt(text: str, span: tuple[int, int] | None) -> str:
    """Return a text on one line, from a little before the place that matters."""
    begin = 0 if span is None else max(0, span[0] - _BEFORE)
    return ("…" if begin else "") + plain(text[begin : begin + 400])


def show_uses(uses: Uses, root: str | None, out: Output) -> None:
    """Write the later places with what an event brought."""
    found = describe(uses.event)
    out.line(out.paint(cut(f"{address(uses.event, root)}  {found.text or found.error}", out.width), "bold"))
    if uses.last_request is not None:
        last = address(uses.last_request, root)
        carry = "carries" if uses.requests == 1 else "carry"
        out.line(f"{count(uses.requests, 'later request')} {carry} it to the model, the last one at {last}")
    elif not uses.uses:
        out.line("No later event contains what it brought.")
    if uses.uses:
        rows = [_use_row(use, root) for use in uses.uses]
        out.table((">at", "what", "found by", "text"), rows, flexible=3, less=("found by",))


def _use_row(use: Use, root: str | None) -> list[Cell]:
    how = use.how if use.how == LINK else f"{use.how} {use.confidence:.2f}"
    path = f"{plain(use.path, 40)}: " if use.what == "argument" else ""
    tool = f"{plain(use.event.tool_name, 40)} " if use.what == "argument" and use.event.tool_name else ""
    return [
        (address(use.event, root), ""),
        (plain(use.what, 30), ""),
        (how, "dim"),
        (tool + path + plain(use.text, 400), ""),
    ]


def why_dict(why: Why, root: str | None) -> dict[str, Any]:
    """Return an answer, as ``--json`` prints it."""
    return {
        "question": why.question,
        "event": _address(why.event, root),
        "verdict": why.verdict,
        "producer": _address(why.producer, root),
        "chains": [_chain_dict(chain, root) for chain in why.chains],
    }


def _chain_dict(chain: Chain, root: str | None) -> dict[str, Any]:
    return {
        "text": chain.text[:_TEXT],
        "path": chain.path,
        "verdict": chain.verdict,
        "reason": chain.reason,
        "confidence": chain.confidence if chain.steps else None,
        "producer": _address(chain.producer.event if chain.producer else None, root),
        "steps": [
            {
                "address": address(step.event, root), "kind": step.event.kind, "what": step.what,
                "path": step.path, "text": step.text[:_TEXT], "how": step.how,
                "confidence": step.confidence, "span": step.span,
            }
            for step in chain.steps
        ],
        "also": [address(event, root) for event in chain.also],
    }  # fmt: skip


def uses_dict(uses: Uses, root: str | None) -> dict[str, Any]:
    """Return the uses of an event, as ``--json`` prints them."""
    return {
        "event": address(uses.event, root),
        "requests": uses.requests,
        "last_request": _address(uses.last_request, root),
        "uses": [
            {
                "address": address(use.event, root), "kind": use.event.kind, "what": use.what,
                "path": use.path, "text": use.text[:_TEXT], "how": use.how, "confidence": use.confidence,
            }
            for use in uses.uses
        ],
    }  # fmt: skip


_SIGN = {SUPPORTED: ("✓", "green"), CITED: ("✓", ""), UNSUPPORTED: ("✗", "red")}


def show_claims(claims: Claims, root: str | None, out: Output) -> None:
    """Write each claim of an answer, and below it what supports it."""
    out.line(out.paint(f"{address(claims.event, root)}  {count(len(claims.claims), 'claim')}", "bold"))
    for claim in claims.claims:
        sign, style = _SIGN.get(claim.state, ("?", "yellow"))
        state = f"{sign} {claim.state:12} "
        out.line(out.cells([(state, style), (cut(plain(claim.text, 400), out.width - width_of(state)), "")]))
        for support in claim.supports:
            out.line(cut(f"    {_support(support, root)}", out.width))
    cited = sum(claim.is_covered for claim in claims.claims)
    out.line()
    words = f"{cited} of {count(len(claims.claims), 'claim')} with a source ({claims.coverage:.0%})"
    recorded = f", {claims.verified:.0%} in a recorded event" if cited else ""
    out.line(
        out.paint(f"{claims.verdict}: ", "yellow" if claims.verdict != ALL else "green") + words + recorded
    )


def _support(support: Support, root: str | None) -> str:
    where = (
        f"← {address(support.event, root)} {plain(support.path, 40)}" if support.event is not None else "←"
    )
    span = f"[{support.span[0]}:{support.span[1]}]" if support.event is not None and support.span else ""
    words = plain(support.text or support.quote, 200)
    state = f"{support.state}: " if support.state not in (SUPPORTED, CITED) else ""
    return f"{where}{span} {state}{plain(support.source, 80)}{f'  “{words}”' if words else ''}"


def claims_dict(claims: Claims, root: str | None) -> dict[str, Any]:
    """Return the claims of an answer, as ``--json`` prints them."""
    return {
        "event": address(claims.event, root),
        "verdict": claims.verdict,
        "coverage": round(claims.coverage, 4),
        "verified": round(claims.verified, 4),
        "citations": claims.citations,
        "claims": [
            {
                "text": claim.text, "span": [claim.begin, claim.end], "state": claim.state,
                "supports": [
                    {
                        "by": each.by, "source": each.source, "title": each.title, "state": each.state,
                        "quote": each.quote[:_TEXT], "event": _address(each.event, root),
                        "path": each.path, "span": each.span, "text": each.text[:_TEXT],
                        "how": each.how, "confidence": each.confidence,
                    }
                    for each in claim.supports
                ],
            }
            for claim in claims.claims
        ],
    }  # fmt: skip


def _address(event: Event | None, root: str | None) -> str | None:
    return None if event is None else address(event, root)
