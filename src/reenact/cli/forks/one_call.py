"""``reenact fork --one-call``: the request at the cut, changed and sent, and nothing else."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ...capture.runs.run import RunContext
from ...capture.seams.install import install
from ...errors import UsageError
from ...playback.edits.edits import CutRequest
from ...playback.fork.send_request import plain_request, send
from ...playback.matching.request import Request
from ...playback.matching.tape import Tape
from ...recording.recording import Recording
from ...tracefile.text import clean
from ...wire import reading
from ...wire.routes import host_of
from ..output import Output
from ..rerun.launch import TRY_ELSEWHERE
from .one_fork import call_at, edits_of
from .outcome import Spent

FAILED = 1
_SHOWN = 2_000


def run(args: argparse.Namespace, recording: Recording, out: Output) -> int:
    tape = Tape(recording)
    call = call_at(tape, args.at, recording)
    edits = edits_of(args)
    if edits.replaces_answer:
        raise UsageError(
            "--one-call asks the model, and --response says what it answered: nothing is left to send",
            hint="leave --one-call out to see what the agent makes of that answer",
        )
    edits.check(call, tape)
    request = plain_request(call)
    made = edits.request(request.body, request.url or "", CutRequest(request.body, request.url))
    told = {"of": recording.run_id, "at": call.event.step, "call": call.id, "edits": edits.as_json()}
    context = RunContext.start(args.name or f"{recording.name}-fork", fork=told, parent_run=recording.run_id)
    context.recorder().start()
    if not os.path.exists(context.path or ""):
        raise UsageError("the run cannot be written, so nothing was sent", hint=TRY_ELSEWHERE)
    install(hosts=[host_of(made.url)])
    try:
        answer = send(Request(request.kind, request.name, made.body, url=made.url), call)
    except BaseException:
        context.close("error")
        raise
    context.close("error" if answer.status >= 400 else "ok")
    spent = Spent(Recording.load(context.path or "", context.run_id))
    before = call.answer.body
    result: dict[str, Any] = {
        "run": context.run_id, "path": context.path, "fork": told, "status": answer.status,
        "notes": list(made.notes), "recorded": before, "answer": answer.body, "live": spent.as_dict(),
    }  # fmt: skip
    if args.json:
        out.json_line(result)
    else:
        for note in made.notes:
            out.say(clean(f"reenact: {note}"))
        provider = call.event.provider if type(call.event.provider) is str else None
        out.line(clean("recorded: " + reading.text(before, provider)[:_SHOWN]))
        out.line(clean("now:      " + reading.text(answer.body, provider)[:_SHOWN]))
        out.say(clean(f"reenact: {os.path.relpath(context.path or '')}  {spent.text()}"))
    return FAILED if answer.status >= 400 else 0
