"""A turn as JSON: the same facts that ``show`` draws, texts whole."""

from __future__ import annotations

from typing import Any

from ...money.ledger import Ledger
from ...recording.calls import Call, tokens_of
from ...recording.prompt import Piece, answer_pieces, prompt_of
from .event_line import address, error_dict
from .run_totals import spent_ms
from .selection import Block


def turn_dict(block: Block, ledger: Ledger, root: str | None) -> dict[str, Any]:
    """Return what ``--json --turns`` says of a turn."""
    turn = block.turn
    assert turn is not None
    found, end, totals = (
        prompt_of(turn, block.before, is_far=block.is_far),
        turn.response,
        tokens_of(turn.attempts),
    )
    answer = answer_pieces(end) if end is not None and not end.is_partial else []
    fields = {} if end is None else end.stored_fields
    return {
        "turn": turn.number,
        "lane": block.lane,
        "model": ledger.model_of(turn.call),
        "request": address(turn.request, root),
        "response": None if end is None else address(end, root),
        "attempts": len(turn.attempts),
        "tokens": {
            "in": totals.tokens_in,
            "out": totals.tokens_out,
            "cache_read": totals.cache_read,
            "cache_write": totals.cache_write,
        },
        "money": ledger.bill(turn.attempts).as_dict(),
        "duration_ms": spent_ms(turn),
        "stop_reason": fields.get("stop_reason"),
        "error": None if turn.error is None else error_dict(turn.error),
        "prompt_recorded": found.recorded,
        "changed": [{"what": what, "how": how} for what, how in found.changes],
        "new": [_piece(piece) for piece in found.new],
        "answer": [_piece(piece) for piece in answer],
        "tools": [_tool(call, root) for call in turn.tools],
    }


def _piece(piece: Piece) -> dict[str, Any]:
    return {"role": piece.role, "sort": piece.sort, "text": piece.text, "answers": piece.id}


def _tool(call: Call, root: str | None) -> dict[str, Any]:
    return {
        "tool": call.tool,
        "id": call.tool_id,
        "args": call.args,
        "called": address(call.event, root),
        "result": None if call.end is None else address(call.end, root),
        "duration_ms": call.duration_ms,
        "error": None if call.error is None else error_dict(call.error),
        "derived": call.derived,
    }
