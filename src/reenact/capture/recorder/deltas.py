"""History once: of a request's body, write only what the run's trace does not hold yet.

A request repeats the whole conversation, so a naive recorder's file grows with the square of the turns.
``History`` names a base, what is kept of it, and encodes the rest; the recorder writes it.
A list is compared with our own copies, never with the caller's objects: an edit in place is seen.
"""

from __future__ import annotations

import marshal
from _operator import is_not, ne
from itertools import compress, count, islice

from ... import schema
from ...lines import dumps, field, is_plain, quote
from .. import guard
from ..import_lock import import_lock
from .encode import CAP
from .jsonable import frozen, jsonable
from .long_strings import INLINE_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .encode import Texts


# Our own copies of JSON values: cheap to compare with the caller's, and exact.
#
# Used by History. Containers are copied, strings shared. ``==`` of Python takes 1, 1.0 and True for equal,
# JSON does not, so numbers are wrapped.

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Copy: TypeAlias = Any
    Change: TypeAlias = tuple[list[str], dict[str, Any]]
else:
    Copy = object

MAX_CHANGES = 6
MAX_SET_BYTES = 400
"""A change larger than this is not small; the element is then written in full."""


class Exact:
    """A number that equals only the same number of the same type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        mine = self.value
        if type(other) is Exact:
            other = other.value
        return type(other) is type(mine) and (other is mine or str(other) == str(mine))

    __hash__ = None  # type: ignore[assignment]


def copy_of(plain: Any) -> Copy:
    """Copy a plain value; strings stay the caller's own objects, as they cannot change."""
    kind = type(plain)
    if kind is str or plain is None:
        return plain
    if kind is dict:
        return {key: item if type(item) is str else copy_of(item) for key, item in plain.items()}
    if kind is list:
        return [item if type(item) is str else copy_of(item) for item in plain]
    return Exact(plain)


def plain_of(copy: Any) -> Any:
    """Turn a copy back into the plain value."""
    kind = type(copy)
    if kind is dict:
        return {key: plain_of(item) for key, item in copy.items()}
    if kind is list:
        return [plain_of(item) for item in copy]
    return copy.value if kind is Exact else copy


def small_change(before: Copy, after: Any) -> Change | None:
    """Return ``(drop, set)`` by JSON pointer that turns a copy into a plain value, None if it is not small.

    Applied in that order they give the value's keys in the value's own order too, so that both have
    the same text.
    """
    drop: list[str] = []
    put: dict[str, Any] = {}
    if not _compare(before, after, "", drop, put) or not (drop or put):
        return None
    return (drop, put) if len(dumps(put)) <= MAX_SET_BYTES else None


def _compare(before: Any, after: Any, at: str, drop: list[str], put: dict[str, Any]) -> bool:
    if len(drop) + len(put) > MAX_CHANGES:
        return False
    if after == before:
        return True
    kind = type(before)
    if kind is dict and type(after) is dict:
        kept = [key for key in before if key in after]
        if [*kept, *(key for key in after if key not in before)] != list(after):
            return False  # the keys stand in another order
        drop += [f"{at}/{_escape(key)}" for key in before if key not in after]
        for key, item in after.items():
            if key not in before:
                put[f"{at}/{_escape(key)}"] = item
            elif item != before[key] and not _compare(before[key], item, f"{at}/{_escape(key)}", drop, put):
                return False
        return True
    if kind is list and type(after) is list and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return all(_compare(old, new, f"{at}/{index}", drop, put) for index, (old, new) in pairs)
    if not at:
        return False
    put[at] = after
    return True


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


# Requests as the file holds them: what a later request can build on.
#
# Used by History. A base is a list of our own copies; a pure continuation extends it in place.

FEW = 2
"""Elements at a list's end that a moved cache marker changes; up to here a list counts as continued."""


class Element:
    """One message of a conversation that stands in the file; every base that has it shares it."""

    __slots__ = ("_stored", "copy", "key", "origin", "touched")

    def __init__(self, copy: Copy, origin: tuple[str, int], key: int, stored: bytes | None) -> None:
        self.copy = copy
        self.origin = origin
        """The request and position where a reader finds it."""
        self.key = key
        """The hash of the text as the agent sent it."""
        self.touched = stored is not None
        """True if what stands in the file differs from what the agent sent: redacted or moved to a blob."""
        self._stored = stored

    def reference(self, change: str = "") -> str:
        return f'{{"$same":[{quote(self.origin[0])},{self.origin[1]}]{change}}}'

    def stored(self) -> bytes:
        """Return the text in the file. Kept from the first time on: only an agent that edits its history
        needs it, and needs it again with every request."""
        if self._stored is None:
            self._stored = dumps(plain_of(self.copy)).encode("ascii")
        return self._stored


class Base:
    """A request as the file holds it; a pure continuation extends it in place."""

    __slots__ = ("call", "chains", "copies", "elements", "key", "lane", "rest")

    def __init__(self, key: str, lane: str) -> None:
        self.key = key
        self.lane = lane
        self.call = ""
        self.elements: list[Element] = []
        self.copies: list[Copy] = []
        self.chains = bytearray()
        """Eight bytes after every element."""
        self.rest: dict[str, Copy] = {}

    def chain(self, n: int) -> bytes:
        return bytes(self.chains[8 * n - 8 : 8 * n]) if n else bytes(8)

    def common(self, raw: list[Any], base: Base | None = None, kept: int = 0) -> int:
        """Return how many leading elements are equal; ``kept`` of those of another base are known to be."""
        start = 0 if base is None else min(kept, _first(map(is_not, self.copies, base.copies), kept))
        try:
            differ = map(ne, islice(raw, start, None), islice(self.copies, start, None))
            return start + _first(differ, min(len(raw), len(self.copies)) - start)
        except Exception as exc:  # an element whose == raises
            guard.pass_on(exc)
            return 0


def _first(flags: Iterable[object], default: int) -> int:
    """Return the place of the first true one; one loop in C."""
    return next(compress(count(), flags), default)


class _Edited:
    """Finds a message of an edited history in the file: where its base has it, else by its text.

    Messages dropped from the middle move all later ones by as many places, so that one found by its text
    shows where those after it stand.
    """

    __slots__ = ("_base", "_known", "_places", "_shift")

    def __init__(self, base: Base, history: History) -> None:
        self._base = base
        self._known = history.known
        self._places: dict[int, int] | None = None
        self._shift = 0

    def at(self, index: int, raw: Any) -> Element | None:
        """Return the element that should stand there, if it does; comparing is cheaper than encoding."""
        place = index + self._shift
        copies = self._base.copies
        is_same = 0 <= place < len(copies) and copy_equal(raw, copies[place])
        return self._base.elements[place] if is_same else None

    def find(self, index: int, plain: Any, key: int) -> Element | None:
        """Return the element with this text."""
        same = self._known.get((self._base.key, key))
        if same is None or not copy_equal(plain, same.copy):
            return None
        if self._places is None:
            self._places = {id(element): at for at, element in enumerate(self._base.elements)}
        self._shift = self._places.get(id(same), index + self._shift) - index
        return same


def goes_on(base: Base | None, kept: int, raw: list[Any]) -> str | None:
    """Return the lane of the conversation that a request continues, None for a new one."""
    if (
        base is None
        or raw is None
        or not kept
        or len(raw) < len(base.copies)
        or kept + FEW < len(base.copies)
    ):
        return None
    for copy, element in zip(base.copies[kept:], raw[kept:], strict=False):
        if not is_plain(element) or not _has_same_text(copy, element):
            return None  # only the beginning is the same, a system prompt for instance
    return base.lane


def _has_same_text(copy: Copy, element: Any) -> bool:
    """True if only a marker was moved: another text in the same place is another conversation."""
    with import_lock:
        from ...wire.reading import text

    return small_change(copy, element) is not None and text(plain_of(copy)) == text(element)


def copy_equal(raw: Any, copy: Copy) -> bool:
    try:
        return bool(raw == copy)
    except Exception as exc:
        guard.pass_on(exc)
        return False


def conversation_key(body: Any) -> str | None:
    """Return which key of a body holds the conversation as a list."""
    if type(body) is dict:
        for name in schema.LISTS:
            if type(body.get(name)) is list:
                return name
    return None


# The model's own answers: a request that sends one back need not write it again.
#
# Used by History. An answer is kept as compact bytes per key of the part an agent would append to its
# messages.

MAX_ANSWERS = 8
MAX_BYTES = 32 << 10
_NOT_THE_MODELS = ("user", "system", "tool", "developer")
_EXACT = 0
"""The marshal version whose bytes depend on the value alone, not on interning or sharing."""


class Answers:
    """The last answers of a run, newest last."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, str, dict[str, bytes]]] = []
        """(call, JSON pointer into the response's body, each key's exact bytes)."""

    def clear(self) -> None:
        self.parts.clear()

    def add(self, call: str, parts: list[tuple[str, dict[str, Any]]]) -> None:
        """Remember the parts of an answer whose line stands in the file as it was received."""
        for pointer, part in parts:
            try:
                exact = {key: marshal.dumps(item, _EXACT) for key, item in part.items() if type(key) is str}
            except ValueError:  # an object in it, or nested too deeply
                continue
            if sum(map(len, exact.values())) <= MAX_BYTES:
                self.parts.append((call, pointer, exact))
        del self.parts[:-MAX_ANSWERS]

    def reference(self, element: Any) -> str | None:
        """Return ``{"$answer": …}`` if the element is made of one answer's values."""
        if type(element) is not dict or not element or not self.parts:
            return None
        if element.get("role") in _NOT_THE_MODELS:
            return None
        try:
            wanted = {key: marshal.dumps(item, _EXACT) for key, item in element.items()}
        except ValueError:
            return None
        for call, pointer, exact in reversed(self.parts):
            for key, item in wanted.items():
                if exact.get(key) != item:
                    break
            else:
                at = f',"at":{dumps(pointer)}' if pointer else ""
                keys = "" if list(wanted) == list(exact) else f',"keys":{dumps(list(wanted))}'
                return f'{{"$answer":{dumps(call)}{at}{keys}}}'
        return None


try:
    from _blake2 import blake2b
except ImportError:  # a build without the module
    from hashlib import blake2b

MAX_BASES = 8
_FEW_KNOWN = 256
_BASE, _KEEP, _N, _CHAIN, _BODY = (field(name, "") for name in ("base", "keep", "n", "chain", "body"))
_ABSENT = object()


class History:
    """What the run's requests and answers have in common; one per recorder, freed with the run."""

    def __init__(self) -> None:
        self.bases: list[Base] = []
        """Least recently used first."""
        self.answers = Answers()
        self.known: dict[tuple[str, int], Element] = {}
        """The elements of the bases, and some of earlier ones, by the name of their list, which a reference
        leaves out, and the hash of their text."""
        self._most_known = _FEW_KNOWN
        self.resets = 0
        """Tells what was written before everything had to be forgotten from what was written after it."""
        self.changes = object()
        """Another one after every change; one made by a signal handler outdates what a draft has found."""

    def reset(self) -> None:
        """Forget everything: the next request is written in full."""
        self.resets += 1
        self.changes = object()
        self.bases.clear()
        self.known.clear()
        self.answers.clear()

    def draft(self, texts: Texts, body: Any, *, is_fresh: bool) -> RequestDraft:
        """Make a body ready; of one that is ``is_fresh``, the caller's alone, find what it continues."""
        draft = RequestDraft(self, texts, body, is_fresh)
        if is_fresh and draft.key is not None:
            draft.base, draft.kept = self.nearest(draft.key, draft.messages)
            draft.continues = goes_on(draft.base, draft.kept, draft.messages)
            if not draft.kept:
                draft.continues = self._under_another_prompt(draft.key, draft.messages)
            draft.seen = self.changes
        return draft

    def encode(self, draft: RequestDraft, call: str, lane: str) -> str:
        """Return the fields of a request that ``remember`` takes once its line is in the file."""
        if draft.key is None:
            return draft.whole_text()
        draft.own_messages()
        if draft.base is None or draft.base.lane != lane or draft.seen is not self.changes:
            draft.base, draft.kept = self.best_base(draft.key, lane, draft.messages)
        if draft.make_plain():
            draft.base, draft.kept = self.best_base(draft.key, lane, draft.messages)
        return draft.text(call, lane)

    def remember(self, draft: RequestDraft) -> None:
        """Take a request whose line is in the file as one that later requests can build on."""
        if draft.key is not None:
            self.changes = object()
            self._take(draft.commit(draft.key))
            for element in draft.new:
                self.known[draft.key, element.key] = element
            if len(self.known) > self._most_known:  # seldom, so that each element is looked at a few times
                self.known = {(base.key, each.key): each for base in self.bases for each in base.elements}
                self._most_known = 2 * len(self.known) + _FEW_KNOWN

    def _take(self, base: Base) -> None:
        """Make this the most recently used base."""
        if base in self.bases:
            self.bases.remove(base)
        self.bases.append(base)
        del self.bases[:-MAX_BASES]

    def nearest(self, key: str, raw: list[Any]) -> tuple[Base | None, int]:
        """Return the base that shares the longest prefix, whatever its lane; of several the newest."""
        found: tuple[Base | None, int] = (None, 0)
        for base in self.bases:
            if base.key == key and (common := base.common(raw, *found)) >= found[1]:
                found = base, common
        return found

    def _under_another_prompt(self, key: str, raw: list[Any]) -> str | None:
        """Return the lane whose conversation a request has but for its first message, with a result as text.

        So does smolagents when an agent has run out of steps: only the text shows that its tools have ended.
        """
        with import_lock:
            from ...wire.pairing import observation

        for base in reversed(self.bases):
            n = len(base.copies)
            if base.key == key and 1 < n < len(raw) and all(map(copy_equal, raw[1:n], base.copies[1:])):
                return base.lane if any(map(observation, raw[n:])) else None
        return None

    def best_base(self, key: str, lane: str, raw: list[Any]) -> tuple[Base | None, int]:
        """Return the base that shares the longest prefix, the same lane's newest first."""
        best: Base | None = None
        kept = 0
        newest_first = self.bases[::-1]
        for base in sorted(newest_first, key=lambda each: each.lane != lane):
            if base.key == key:
                common = base.common(raw, best, kept)
                if best is None or common > kept:
                    best, kept = base, common
                if kept and kept + FEW >= len(base.copies):
                    break
        return best, kept


class RequestDraft:
    """One request on its way into the file: compared with what the file holds, then written, then a base."""

    __slots__ = (
        "_content", "_history", "_original", "base", "body", "call", "chains", "continues", "is_fresh",
        "is_ours", "kept", "key", "lane", "lossy", "messages", "new", "rest", "seen", "texts",
    )  # fmt: skip

    def __init__(self, history: History, texts: Texts, body: Any, is_fresh: bool) -> None:
        self._history = history
        self.texts = texts
        self._original = body
        self._content = content = texts.content()
        self.is_fresh = is_fresh
        """True if nobody else has it, so that it will not change."""
        self.is_ours = content != "full" or type(body) is not dict or not _has_plain_keys(body)
        """True if the body is our own plain copy already, with ``$`` keys doubled."""
        self.body = texts.withhold("body", jsonable(body), content) if self.is_ours else body
        self.key = conversation_key(self.body)
        self.messages: list[Any] = self.body[self.key] if self.key is not None else []
        self.base: Base | None = None
        self.kept = 0
        """How many messages of the base it begins with."""
        self.continues: str | None = None
        """The lane of the conversation that the request continues, None for a new one."""
        self.seen: object = None
        """The state of the history in which the base was found."""
        self.call = self.lane = ""
        self.new: list[Element] = []
        """What it adds to the messages of its base, as far as it is written."""
        self.chains = bytearray()
        self.rest: dict[str, Copy] = {}
        self.lossy = False

    def own_messages(self) -> None:
        """Take the list as our own: another thread may add a message while we look at them."""
        if not self.is_ours:
            self.messages = list(self.messages)
            self.body = {**self.body, self.key: self.messages}

    def make_plain(self) -> bool:
        """Make SDK objects among the messages plain, which never equal our copies; True if there were any."""
        if self.is_ours or self.kept >= len(self.messages) or is_plain(self.messages[self.kept]):
            return False
        self.body, self.is_ours = jsonable(self.body), True
        self.messages = self.body[self.key]
        return True

    def whole_text(self) -> str:
        """Return the field ``body`` of a request without a conversation."""
        texts = self.texts
        clean = texts.clean("body", self.body, "full", ours=self.is_ours)
        return texts.join(texts.shorten({"body": clean}, CAP))

    def for_listeners(self) -> str:
        """Return the field ``body`` in full."""
        plain = {"body": self.texts.clean("body", self._original, self._content)}
        return self.texts.join(self.texts.shorten(plain, INLINE_MAX, inline=True))

    def text(self, call: str, lane: str) -> str:
        """Return ``base keep n chain body`` as they stand in the line; of a request with a conversation."""
        self.call, self.lane = call, lane
        elements = self._element_texts()
        keep: list[str] = []
        parts: list[str] = []
        for name, value in self.body.items():
            quoted = quote(name if len(name) < 12 else self.texts.name(name))
            if name == self.key:
                if self.kept:
                    keep.append(f"{quoted}:{self.kept}")
                if elements or not self.kept:
                    parts.append(f"{quoted}:[{','.join(elements)}]")
            elif self._is_kept(name, value):
                keep.append(f"{quoted}:true")
            else:
                plain, text, _, _ = self._stored(value, name)
                self.rest[name] = copy_of(plain)
                parts.append(f"{quoted}:{text}")
        chain = self.chains[-8:] or (self.base.chain(self.kept) if self.base is not None else bytes(8))
        text = ""
        if self.base and keep:
            text = f"{_BASE}{quote(self.base.call)}{_KEEP}{{{','.join(keep)}}}"
        text += f'{_N}{len(self.messages)}{_CHAIN}"{bytes(chain).hex()}"'
        if self.lossy:
            text += field("lossy", "true")
        return f"{text}{_BODY}{{{','.join(parts)}}}"

    def _is_kept(self, name: str, value: Any) -> bool:
        """True if the base has the same value under this name; it is then ours to carry on."""
        if self.base is None:
            return False
        mine = self.base.rest.get(name, _ABSENT)
        if mine is _ABSENT:
            return False
        if not copy_equal(value, mine) and (
            self.is_ours or is_plain(value) or not copy_equal(jsonable(value), mine)
        ):
            return False
        self.rest[name] = mine
        return True

    def _element_texts(self) -> list[str]:
        """Return the messages after the kept ones as they stand in the line, most of them as references if
        the agent has edited its history."""
        base, kept = self.base, self.kept
        chain = base.chain(kept) if base is not None else bytes(8)
        edited = _Edited(base, self._history) if base is not None and kept + FEW < len(base.copies) else None
        texts = []
        for index, message in enumerate(self.messages[kept:], kept):
            same = edited.at(index, message) if edited is not None else None
            if same is None:
                written, stored = self._one(index, message, edited)
            else:
                written, stored = same.reference(), same.stored()
                self.new.append(same)
            texts.append(written)
            chain = blake2b(chain + stored, digest_size=8).digest()
            self.chains += chain
        return texts

    def _one(self, index: int, raw: Any, edited: _Edited | None) -> tuple[str, bytes]:
        """Return one element as written (maybe a reference) and as a reader will rebuild it."""
        plain, text, key, touched = self._stored(raw, None)
        same = edited.find(index, plain, key) if edited is not None else None
        if same is not None:
            self.new.append(same)
            return same.reference(), same.stored()
        written, stored = text, text.encode("ascii")
        if not touched:
            reference = self._changed(index, plain) or self._history.answers.reference(plain)
            if reference is not None and len(reference) < len(text):
                written = reference
        self.new.append(Element(copy_of(plain), (self.call, index), key, stored if touched else None))
        return written, stored

    def _changed(self, index: int, plain: Any) -> str | None:
        """Refer to the base's element at this place if only a little changed: a moved cache marker."""
        if self.base is None or index >= len(self.base.elements):
            return None
        old = self.base.elements[index]
        change = None if old.touched else small_change(old.copy, plain)
        if change is None:
            return None
        drop, put = change
        more = (f',"drop":{dumps(drop)}' if drop else "") + (f',"set":{dumps(put)}' if put else "")
        return old.reference(more)

    def _stored(self, raw: Any, name: str | None) -> tuple[Any, str, int, bool]:
        """Return a value plain, its text as the file holds it, the hash of its own text, and whether the
        two texts differ."""
        # Frozen first: the text in the file and the copy we compare with must be of the same moment.
        plain = raw
        if not self.is_ours:
            plain = (raw if self.is_fresh else frozen(raw)) if is_plain(raw) else jsonable(raw)
        try:
            text = dumps(plain)
        except (ValueError, TypeError, RecursionError, MemoryError) as exc:  # NaN, a huge int
            guard.pass_on(exc)
            plain = jsonable(raw)
            text = dumps(plain)
        key = hash(text)
        redactor = self.texts.redactor
        cleaned = plain
        if redactor is not None and redactor.may_hold(text if name is None else f"{quote(name)}:{text}"):
            cleaned = redactor.clean(plain, name)
            if cleaned is not plain:
                text = dumps(cleaned)
        touched = cleaned is not plain
        if len(text) > CAP:
            short = self.texts.shorten({"body": cleaned}, CAP)
            self.lossy |= "lossy" in short
            text = dumps(short["body"])
            touched = True
        return plain, text, key, touched

    def commit(self, key: str) -> Base:
        """Return the request as a base; called once its line is in the file."""
        base = self.base
        if base is None or base.lane != self.lane or self.kept + FEW < len(base.copies):
            fresh = Base(key, self.lane)
            if base is not None:
                fresh.elements = base.elements[: self.kept]
                fresh.copies = base.copies[: self.kept]
                fresh.chains = base.chains[: 8 * self.kept]
            base = fresh
        else:
            del base.elements[self.kept :], base.copies[self.kept :], base.chains[8 * self.kept :]
        base.call = self.call
        base.lane = self.lane
        base.elements += self.new
        base.copies += [element.copy for element in self.new]
        base.chains += self.chains
        base.rest = self.rest
        return base


def _has_plain_keys(body: dict[Any, Any]) -> bool:
    for key in body:
        if type(key) is not str or key < "%":
            return False
    return True
