"""What holds for any edit on any conversation: made once, nothing else touched, every tool still answered."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.errors import UsageError
from reenact.playback.edits.cut_request import CutRequest
from reenact.playback.edits.edits import Edits
from reenact.wire.pairing import consistent
from support.edited import DIALECTS, another, conversation
from support.examples import up_to

WORDS = st.sampled_from(["hotels", "found", "Go on", "ok", "日本 🦉", "{}"])
TURNS = st.lists(
    st.tuples(st.just("tool"), WORDS, WORDS) | st.tuples(st.just("text"), WORDS, WORDS), max_size=4
)
SOME = settings(up_to(400), deadline=None)
ALL = pytest.mark.parametrize("name", DIALECTS)


def spoken(name: str, turns: list[Any], ids: str) -> dict[str, Any]:
    """A conversation of these turns, which repeat themselves as agents do."""
    spelled = DIALECTS[name]
    messages = [*spelled.before, spelled.user("Plan Lisbon")]
    for number, (kind, one, other) in enumerate(turns):
        if kind == "tool":
            messages += spelled.use(f"{ids}{number}", one) + spelled.result(f"{ids}{number}", other)
        else:
            messages += [*spelled.assistant(one), spelled.user(other)]
    return copy.deepcopy({**spelled.rest, spelled.key: messages})


@st.composite
def edits(draw: Any) -> Edits:
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["inject_user"] = draw(WORDS)
    if draw(st.booleans()):
        options["drop"] = draw(st.lists(st.integers(-9, 9), min_size=1, max_size=3))
    if draw(st.booleans()):
        options["tool_result"] = draw(WORDS)
    sets = draw(
        st.sets(st.sampled_from(["system=New.", "system+= More.", "model=b", "temperature=0", "x=1"]))
    )
    return Edits.parse(sets=sorted(sets), **options)


@ALL
@SOME
@given(edits=edits(), turns=TURNS, more=TURNS, ids=st.sampled_from(["c", "live"]))
def test_any_edit_on_any_conversation(name, edits, turns, more, ids):
    """With other ids signatures differ as well, so that the conversation is known again only here and there."""
    url = DIALECTS[name].url
    cut = CutRequest(spoken(name, turns, "c"), url)
    try:
        edits._changes(cut)
    except UsageError as why:
        assert why.hint
        return
    for later in ([], more):
        body = spoken(name, [*turns, *later], ids)
        before = copy.deepcopy(body)
        found = edits.request(body, url, cut)
        assert body == before
        again = edits.request(found.body, found.url, cut)
        assert (again.body, again.url) == (found.body, found.url)
        messages = conversation(found.body)
        assert consistent(messages, name).length == len(messages)
        if name == "bedrock":
            roles = [message["role"] for message in messages]
            assert all(one != other for one, other in zip(roles, roles[1:], strict=False))
        # What the agent said since the cut stands at the end, to the letter.
        since = conversation(body)[len(cut.messages) :]
        assert messages[len(messages) - len(since) :] == since
        if not edits.sets:
            key = DIALECTS[name].key
            assert {**found.body, key: 0} == {**body, key: 0}
        if not edits:
            assert found.body == body


@ALL
@SOME
@given(edits=edits(), turns=TURNS)
def test_another_agent_is_never_touched(name, edits, turns):
    url = DIALECTS[name].url
    cut = CutRequest(spoken(name, turns, "c"), url)
    try:
        edits._changes(cut)
    except UsageError:
        return
    found = edits.request(another(name), url, cut)
    assert (found.body, found.url, len(found.notes)) == (
        another(name),
        url,
        int(bool(edits.sets and not edits.once)),
    )


@SOME
@given(edits=edits())
def test_edits_are_the_same_after_they_were_encoded(edits):
    assert Edits.from_json(json.loads(json.dumps(edits.as_json()))) == edits
    assert bool(edits) == bool(edits.as_json())


@SOME
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    ),
    st.text(max_size=30),
    edits(),
)
def test_no_request_is_too_odd(body, url, edits):
    cut = CutRequest(spoken("anthropic", [("tool", "a", "b")], "c"), DIALECTS["anthropic"].url)
    try:
        edits._changes(cut)
    except UsageError:
        return
    assert edits.request(body, url, cut).body == body
