"""Fingerprints of requests: which request of a run that is run again is which request of its recording.

Three levels. L0 is the request as it was sent, L1 what it asks (``rules`` says what makes no difference), L2
its outline, by which the nearest one is found. Bodies must have been redacted before, as the recording was.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ...wire.json_values import canonical, mapping, mappings, string
from ...wire.reading import conversation_key, model_of
from ...wire.routes import endpoint, is_model_host
from . import rules
from .normal_form import exact, pairing, skeleton, without_addresses

# Digests of the parts of a request, each worked out once: a conversation is sent again with every turn.
#
# A part is known again by its bytes as ``marshal`` writes them, which costs a fraction of its JSON and
# tells 1,
# 1.0 and true apart; nothing is ever read back from them.

_MOST_BYTES = 64 << 20
"""Of parts that are remembered; then it begins anew."""


class Part(NamedTuple):
    """One message, or one other key of a request."""

    exactly: bytes
    """Digest of it as it is."""
    seen: bytes
    """Digest of its normal form, without ids."""
    ids: tuple[str, ...]


class _Memo:
    def __init__(self) -> None:
        self.known: dict[bytes, Part] = {}
        self.size = 0

    def get(self, value: Any, work_out: Callable[[], Part]) -> Part:
        try:
            key = marshal.dumps(value, 2)
        except ValueError:  # not plain JSON
            return work_out()
        found = self.known.get(key)
        if found is None:
            found = work_out()
            self.size += len(key)
            if self.size > _MOST_BYTES:
                self.known, self.size = {}, len(key)
            self.known[key] = found
        return found


_memo = _Memo()


def element_part(element: Any) -> Part:
    """Return the digests of one element of a conversation."""
    return _memo.get(element, lambda: _worked_out(element))


def key_part(key: str, value: Any) -> Part:
    """Return the digests of one key of a request besides its conversation."""
    whole = {key: value}
    return _memo.get((key, value), lambda: _worked_out(whole, top=True))


def _worked_out(value: Any, *, top: bool = False) -> Part:
    ids: list[str] = []
    seen = canonical(skeleton(value, ids, top=top))
    return Part(_part_digest(canonical(value)), _part_digest(seen), tuple(ids))


def _part_digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


MODEL, TOOL, HTTP = "model", "tool", "http"
"""Kinds of calls. What an MCP session calls is a tool; embeddings, files and the like are ``http``."""

_STREAMING_PATHS = (
    ":streamGenerateContent",
    ":streamRawPredict",
    "/converse-stream",
    "/invoke-with-response-stream",
)
_STREAMING_BY_DEFAULT = ("/api/chat", "/api/generate")
_NOTHING = key_part("", None).seen
"""Of a key that makes no difference: it may as well not be there."""


class Fingerprint(NamedTuple):
    """Of one request; two are the same request if their ``l1`` is equal."""

    kind: str
    site: str
    """What is called, whatever it is asked: ``POST /v1/messages``, ``tool search``."""
    is_stream: bool
    content: str
    """L1 but for the question whether a stream is asked for."""
    l1: str
    l0: str


class Shape(NamedTuple):
    """L2: the outline of a request."""

    family: str | None
    roles: tuple[str, ...]
    tools: tuple[str, ...]
    schemas: tuple[str, ...]


class Request:
    """What a call asks for, recorded or now; ``sent`` tells of a body that is no JSON (docs/format.md)."""

    def __init__(
        self,
        kind: str,
        name: str,
        body: Any = None,
        *,
        url: str | None = None,
        sent: dict[str, Any] | None = None,
        parts: list[Part] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        """The HTTP method, or the tool's name."""
        self.url = url
        self.body = body
        self.sent = sent
        self._parts = parts
        """The digests of its conversation, where they are known."""

    @classmethod
    def tool(cls, name: str, args: Any) -> Request:
        """Return the request that a tool's call is."""
        return cls(TOOL, name, without_addresses(args))

    def without_upload(self) -> Request:
        """Return the same request without its body that is no JSON."""
        return Request(self.kind, self.name, self.body, url=self.url)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        if self.kind == TOOL:
            return _of_tool(self.name, self.body)
        return fingerprint(self.kind, self.name, self.url, self.body, sent=self.sent, parts=self._parts)

    @cached_property
    def shape(self) -> Shape:
        return shape(self.kind, self.url, self.body)

    @property
    def size(self) -> int | None:
        """How many messages are sent, None if it is no conversation."""
        return conversation_size(self.body) if self.kind == MODEL else None

    def placeholders(self) -> list[str]:
        """Return the secrets it holds, in an order that is the same for equal requests."""
        names: list[str] = []
        self.plain(names)
        return [name for name in names if rules.PLACEHOLDER.fullmatch(name)]

    def plain(self, names: list[str] | None = None) -> Any:
        """Return all that counts as one value, to be compared leaf by leaf; ids are added to ``names``."""
        names = [] if names is None else names
        if self.kind == TOOL:
            return {"tool": self.name, "args": exact(self.body, names)}
        body = skeleton(self.body, names, top=True) if self.kind == MODEL else exact(self.body, names)
        host, path, query = _place(self.url, self.kind, names)
        whole: dict[str, Any] = {"path": path}
        if self.kind != MODEL:
            whole |= {"host": host, "query": query}
        if asks_stream(self.url, self.body):
            whole["stream"] = True
        if self.sent is not None:
            whole["sent"] = _sent(self.sent, names)
        return {**whole, **body} if type(body) is dict else {**whole, "body": body}


def fingerprint(
    sort: str,
    method: str,
    url: str | None,
    body: Any,
    *,
    sent: dict[str, Any] | None = None,
    parts: list[Part] | None = None,
) -> Fingerprint:
    """Return the fingerprint of an HTTP call; any ``sort`` but ``model`` is told by its whole body.

    ``parts`` are the digests of its conversation, where they are known.
    """
    if sort == MODEL and type(body) is dict:
        key = conversation_key(body)
        elements = parts or ([element_part(element) for element in body[key]] if key is not None else [])
        rest = {name: value for name, value in body.items() if name != key}
        return of_parts(method, url, rest, key, elements, sent=sent)
    names: list[str] = []
    seen = canonical(exact(body, names))
    return _print(sort, method, url, body, [seen.encode()], [canonical(body).encode()], names, sent)


def of_parts(
    method: str,
    url: str | None,
    rest: dict[str, Any],
    key: str | None,
    elements: list[Part],
    *,
    sent: dict[str, Any] | None = None,
) -> Fingerprint:
    """Return the fingerprint of a model call by its conversation, the list at ``key``, and the rest."""
    parts = [key_part(name, rest[name]) for name in sorted(rest, key=str)] + elements
    mark = f"\n{key}:{len(elements)}\n".encode()
    names = [name for part in parts for name in part.ids]
    seen = [part.seen for part in parts if part.seen != _NOTHING]
    return _print(MODEL, method, url, rest, [mark, *seen], [mark, *[p.exactly for p in parts]], names, sent)


def _print(
    sort: str,
    method: str,
    url: str | None,
    body: Any,
    seen: list[bytes],
    exactly: list[bytes],
    names: list[str],
    sent: dict[str, Any] | None,
) -> Fingerprint:
    kind = MODEL if sort == MODEL else HTTP
    host, path, query = _place(url, kind, names)
    seen.insert(0, f"{rules.VERSION}\n{kind}\n{method.upper()}\n{host}{path}?{query}\n".encode())
    exactly.insert(0, f"{method}\n{url}\n".encode())
    if sent is not None:
        exactly.append(canonical(sent).encode())
        seen.append(canonical(_sent(sent, names)).encode())
    seen.append(pairing(names).encode())
    content, streams = _digest(seen), asks_stream(url, body)
    site = f"{method.upper()} {_without_model(path, url, body)}"
    l1 = f"{content}+socket" if is_socket(url) else f"{content}+stream" if streams else content
    return Fingerprint(kind, site, streams, content, l1, _digest(exactly))


def _of_tool(name: str, args: Any) -> Fingerprint:
    names: list[str] = []
    whole = canonical([rules.VERSION, TOOL, name, exact(args, names)]) + pairing(names)
    content = _digest([whole.encode()])
    return Fingerprint(
        TOOL, f"tool {name}", False, content, content, _digest([canonical([name, args]).encode()])
    )


def _digest(pieces: list[bytes]) -> str:
    return blake2b(b"".join(pieces), digest_size=16).hexdigest()


def is_socket(url: str | None) -> bool:
    """True for what is asked over a WebSocket."""
    return url is not None and url[:5].lower() in ("ws://", "wss:/")


def asks_stream(url: str | None, body: Any) -> bool:
    """True if the answer is asked for as a stream."""
    if is_socket(url):
        return True
    path = (url or "").partition("?")[0].rstrip("/")
    if path.endswith(_STREAMING_PATHS):
        return True
    wanted = mapping(body).get("stream")
    return wanted is True or (wanted is None and path.endswith(_STREAMING_BY_DEFAULT))


def conversation_size(body: Any) -> int | None:
    """Return the number of elements of the conversation in a body."""
    key = conversation_key(body)
    return len(body[key]) if key is not None else None


def shape(kind: str, url: str | None, body: Any) -> Shape:
    """Return the outline of a request."""
    if kind != MODEL or type(body) is not dict:
        return Shape(None, (), tuple(sorted(map(str, body))) if type(body) is dict else (), ())
    key = conversation_key(body)
    roles = tuple(_role(element) for element in (body[key] if key is not None else ()))
    declared = mappings(body.get("tools"))
    for each in (mapping(body.get("toolConfig")), *declared):
        declared += mappings(each.get("functionDeclarations")) + mappings(each.get("tools"))
    tools = tuple(sorted(filter(None, map(_tool_name, declared))))
    return Shape(_family(model_of(body, url)), roles, tools, _schemas(body))


def _schemas(body: dict[str, Any]) -> tuple[str, ...]:
    asked = (mapping(body.get("response_format")), mapping(mapping(body.get("text")).get("format")))
    names = [
        string(mapping(each.get("json_schema")).get("name")) or string(each.get("name")) for each in asked
    ]
    return tuple(name for name in names if name)


def _role(element: Any) -> str:
    told = mapping(element)
    return string(told.get("role")) or string(told.get("type")) or type(element).__name__


def _tool_name(tool: dict[str, Any]) -> str | None:
    inner = mapping(tool.get("function")) or mapping(tool.get("toolSpec"))
    return string(tool.get("name")) or string(inner.get("name")) or string(tool.get("type"))


def _family(model: str | None) -> str | None:
    words = (model or "").rpartition("/")[2].replace(":", "-").replace(".", "-").split("-")
    return "-".join(word for word in words if word and not any(char.isdigit() for char in word)) or model


def _place(url: str | None, kind: str, names: list[str]) -> tuple[str, str, str]:
    """Return host, path and query of a URL, as far as they are a part of what is asked.

    Who serves a model, below which path and with which key, is none. Of any other call the host is one, its
    port is not: a server of this machine may have another one each time.
    """
    try:
        parts = urlsplit(url or "")
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return "", url or "", ""
    host = "" if kind == MODEL else (parts.hostname or "")
    host = "localhost" if host in rules.THIS_MACHINE else host
    dropped = rules.DROPPED_FROM_QUERY if kind == MODEL or is_model_host(host) else rules.CREDENTIALS
    # Sorted without the numbers of placeholders: these may be others now.
    kept = sorted((exact(name, []), exact(value, []), value) for name, value in pairs)
    query = [(name, exact(value, names)) for name, _, value in kept if name.lower() not in dropped]
    path = unquote(parts.path).rstrip("/")
    return host, exact(endpoint(path) if kind == MODEL else path, names), urlencode(query)


def _without_model(path: str, url: str | None, body: Any) -> str:
    named = mapping(body).get("model")
    model = None if named else model_of({}, url)
    return path.replace(model, "*") if model else path


def _sent(sent: dict[str, Any], names: list[str]) -> Any:
    """Return a body that is no JSON without its length: its boundary is a part of it, and so are secrets."""
    if type(sent.get("parts")) is list:
        return exact(
            {**sent, "bytes": None, "parts": [_unmeasured(part, "value") for part in sent["parts"]]}, names
        )
    return exact(_unmeasured(sent, "body"), names)


def _unmeasured(told: Any, text: str) -> Any:
    """Return what is told of some bytes, without how many they are if their text is told."""
    return {**told, "bytes": None} if type(told) is dict and text in told else told
