"""A text planted at a random event of a random run is found there, however it is written in the question."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reenact import Debugger, Tap
from reenact.explain.why import NO_ORIGIN
from support.examples import up_to
from support.runs_to_debug import answer, request, user

WORDS = st.lists(
    st.sampled_from("alpha beta gamma delta 42 Lisbon hotel über 東京 a.b x-1".split()), max_size=12
)
PLACES = ("system", "user", "response", "argument", "result", "error", "note")
TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=3, max_size=30).map(str.strip)


@st.composite
def planted_runs(draw):
    """Turns with random words, the planted text at one place of one turn, and whether tools are recorded."""
    turns = draw(st.integers(1, 6))
    text = "Qz" + draw(TEXTS) + "9Kx"
    return {
        "turns": [" ".join(draw(WORDS)) for _ in range(turns)],
        "at": draw(st.integers(0, turns - 1)),
        "place": draw(st.sampled_from(PLACES)),
        "text": text,
        "tools_recorded": draw(st.booleans()),
        "compacts": draw(st.integers(0, 9)),
    }


def record(path, run):
    """Write the run; returns the step and derived number at which the text stands first."""
    tap, messages, found, step = Tap(path, redact=False), [user("begin")], None, 1

    def words(turn, place):
        here = turn == run["at"] and place == run["place"]
        return f"{run['turns'][turn]} {run['text'] if here else ''} end"

    for turn in range(len(run["turns"])):
        if turn == run["compacts"]:
            messages = [user("summary")]
        messages = [*messages, user(words(turn, "user"))]
        call = tap.record_model_request({**request(*messages), "system": words(turn, "system")}, "anthropic")
        step += 1
        wanted = {"system": step, "user": step, "response": step + 1, "argument": step + 1}
        body = answer(words(turn, "response"), (f"t{turn}", "look", {"q": [words(turn, "argument")]}))
        tap.record_model_response(body, call=call)
        step += 1
        failed = run["place"] == "error"
        result = words(turn, "error" if failed else "result")
        if run["tools_recorded"]:
            tool = tap.record_tool_call("look", body["content"][-1]["input"])
            tap.record_tool_result(
                "look", None if failed else {"found": result}, result if failed else None, call=tool
            )
            step += 2
            wanted |= {"result": step, "error": step}
        else:
            wanted |= {"result": step + 1, "error": step + 1}  # the request that brings it
        block = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": result, "is_error": failed}
        messages += [{"role": "assistant", "content": body["content"]}, {"role": "user", "content": [block]}]
        if turn == run["at"]:
            found = wanted.get(run["place"])
        if run["place"] == "note" and turn == run["at"]:
            tap.recorder().emit("note", {"said": words(turn, "note")})
            step += 1
            found = step
    tap.record_model_response(answer("done"), call=tap.record_model_request(request(*messages), "anthropic"))
    tap.close()
    return found


@given(planted_runs())
@up_to(400)
def test_the_producer_is_the_event_with_the_text(run):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        step = record(path, run)
        dbg = Debugger.load(path)
        why = dbg.why(run["text"], is_text=True)
        if why.producer is None and not run["tools_recorded"] and run["place"] in ("result", "error"):
            return  # the run ended before a request brought it
        assert (why.producer.step, why.chains[0].steps[0].how) == (step, "exact")
        escaped = json.dumps(run["text"])[1:-1].replace(" ", "\n ")
        assert dbg.why(escaped, is_text=True).producer.step == step
        assert dbg.why(f"{run['text']}0", is_text=True).verdict == NO_ORIGIN
