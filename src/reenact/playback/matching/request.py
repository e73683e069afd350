"""Fingerprints of requests, to match the requests of a replay with those of its recording.

Three levels: L0 is the request as sent, L1 its content (``rules`` lists what makes no difference), L2 its
outline, to find the nearest one. Bodies must be redacted first, as the recording was.
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
from . import equality_rules
from .normal_form import exact, pairing, skeleton, without_addresses

# Digests of the parts of a request, each computed once: a conversation is sent again with every turn.
#
# A part is looked up by its ``marshal`` bytes, which cost a fraction of its JSON and distinguish 1, 1.0 and
# true; they are never loaded.

_MOST_BYTES = 64 << 20
"""Bytes of remembered parts; then the memory starts empty again."""


class Part(NamedTuple):
    """One message, or one other key of a request."""

    exactly: bytes
    """Digest of the part as sent."""
    normal: bytes
    """Digest of its normal form, without ids."""
    ids: tuple[str, ...]


class _Memo:
    def __init__(self) -> None:
        self.known: dict[bytes, Part] = {}
        self.size = 0

    def get(self, value: Any, compute: Callable[[], Part]) -> Part:
        try:
            key = marshal.dumps(value, 2)
        except ValueError:  # not plain JSON
            return compute()
        found = self.known.get(key)
        if found is None:
            found = compute()
            self.size += len(key)
            if self.size > _MOST_BYTES:
                self.known, self.size = {}, len(key)
            self.known[key] = found
        return found


_memo = _Memo()


def element_part(element: Any) -> Part:
    """Return the digests of one element of a conversation."""
    return _memo.get(element, lambda: _computed(element))


def key_part(key: str, value: Any) -> Part:
    """Return the digests of one key of a request besides its conversation."""
    whole = {key: value}
    return _memo.get((key, value), lambda: _computed(whole, top=True))


def _computed(value: Any, *, top: bool = False) -> Part:
    ids: list[str] = []
    normal = canonical(skeleton(value, ids, top=top))
    return Part(_part_digest(canonical(value)), _part_digest(normal), tuple(ids))


def _part_digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


MODEL, TOOL, HTTP = "model", "tool", "http"
"""Kinds of calls. A call of an MCP session is ``tool``; embeddings, files and the like are ``http``."""

_STREAMING_PATHS = (
    ":streamGenerateContent",
    ":streamRawPredict",
    "/converse-stream",
    "/invoke-with-response-stream",
)
_STREAMING_BY_DEFAULT = ("/api/chat", "/api/generate")
_NOTHING = key_part("", None).normal
"""Digest of a key that makes no difference, as if it were absent."""


class Fingerprint(NamedTuple):
    """The fingerprint of one request; two requests are the same if their ``l1`` is equal."""

    kind: str
    site: str
    """The endpoint or tool, without arguments: ``POST /v1/messages``, ``tool search``."""
    is_stream: bool
    content: str
    """L1 without whether a stream is requested."""
    l1: str
    l0: str


class Shape(NamedTuple):
    """L2: the outline of a request."""

    family: str | None
    roles: tuple[str, ...]
    tools: tuple[str, ...]
    schemas: tuple[str, ...]


class Request:
    """The request of a call, recorded or live; ``sent`` describes a non-JSON body (docs/format.md)."""

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
        """Return the request of a tool call."""
        return cls(TOOL, name, without_addresses(args))

    def without_upload(self) -> Request:
        """Return the same request without its non-JSON body."""
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
        """The number of messages, None without a conversation."""
        return conversation_size(self.body) if self.kind == MODEL else None

    def placeholders(self) -> list[str]:
        """Return the placeholders of its secrets, in an order that is the same for equal requests."""
        names: list[str] = []
        self.plain(names)
        return [name for name in names if equality_rules.PLACEHOLDER.fullmatch(name)]

    def plain(self, names: list[str] | None = None) -> Any:
        """Return all that counts as one value, to compare leaf by leaf; ids are added to ``names``."""
        names = [] if names is None else names
        if self.kind == TOOL:
            return {"tool": self.name, "args": exact(self.body, names)}
        body = skeleton(self.body, names, top=True) if self.kind == MODEL else exact(self.body, names)
        host, path, query = _place(self.url, self.kind, names)
        whole: dict[str, Any] = {"path": path}
        if self.kind != MODEL:
            whole |= {"host": host, "query": query}
        if is_stream_request(self.url, self.body):
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
    """Return the fingerprint of an HTTP call; any ``sort`` but ``model`` counts its whole body.

    ``parts`` are the digests of its conversation, where they are known.
    """
    if sort == MODEL and type(body) is dict:
        key = conversation_key(body)
        elements = parts or ([element_part(element) for element in body[key]] if key is not None else [])
        rest = {name: value for name, value in body.items() if name != key}
        return of_parts(method, url, rest, key, elements, sent=sent)
    names: list[str] = []
    normal = canonical(exact(body, names))
    return _print(sort, method, url, body, [normal.encode()], [canonical(body).encode()], names, sent)


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
    normal = [part.normal for part in parts if part.normal != _NOTHING]
    return _print(MODEL, method, url, rest, [mark, *normal], [mark, *[p.exactly for p in parts]], names, sent)


def _print(
    sort: str,
    method: str,
    url: str | None,
    body: Any,
    normal: list[bytes],
    exactly: list[bytes],
    names: list[str],
    sent: dict[str, Any] | None,
) -> Fingerprint:
    kind = MODEL if sort == MODEL else HTTP
    host, path, query = _place(url, kind, names)
    normal.insert(0, f"{equality_rules.VERSION}\n{kind}\n{method.upper()}\n{host}{path}?{query}\n".encode())
    exactly.insert(0, f"{method}\n{url}\n".encode())
    if sent is not None:
        exactly.append(canonical(sent).encode())
        normal.append(canonical(_sent(sent, names)).encode())
    normal.append(pairing(names).encode())
    content, streams = _digest(normal), is_stream_request(url, body)
    site = f"{method.upper()} {_without_model(path, url, body)}"
    l1 = f"{content}+socket" if is_socket(url) else f"{content}+stream" if streams else content
    return Fingerprint(kind, site, streams, content, l1, _digest(exactly))


def _of_tool(name: str, args: Any) -> Fingerprint:
    names: list[str] = []
    whole = canonical([equality_rules.VERSION, TOOL, name, exact(args, names)]) + pairing(names)
    content = _digest([whole.encode()])
    return Fingerprint(
        TOOL, f"tool {name}", False, content, content, _digest([canonical([name, args]).encode()])
    )


def _digest(pieces: list[bytes]) -> str:
    return blake2b(b"".join(pieces), digest_size=16).hexdigest()


def is_socket(url: str | None) -> bool:
    """True for a request over a WebSocket."""
    return url is not None and url[:5].lower() in ("ws://", "wss:/")


def is_stream_request(url: str | None, body: Any) -> bool:
    """True if a request asks for a stream."""
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
    formats = (mapping(body.get("response_format")), mapping(mapping(body.get("text")).get("format")))
    names = [
        string(mapping(each.get("json_schema")).get("name")) or string(each.get("name")) for each in formats
    ]
    return tuple(name for name in names if name)


def _role(element: Any) -> str:
    fields = mapping(element)
    return string(fields.get("role")) or string(fields.get("type")) or type(element).__name__


def _tool_name(tool: dict[str, Any]) -> str | None:
    inner = mapping(tool.get("function")) or mapping(tool.get("toolSpec"))
    return string(tool.get("name")) or string(inner.get("name")) or string(tool.get("type"))


def _family(model: str | None) -> str | None:
    words = (model or "").rpartition("/")[2].replace(":", "-").replace(".", "-").split("-")
    return "-".join(word for word in words if word and not any(char.isdigit() for char in word)) or model


def _place(url: str | None, kind: str, names: list[str]) -> tuple[str, str, str]:
    """Return host, path and query of a URL, as far as they distinguish requests.

    A model call ignores the host, the base path and the key. Any other call counts the host but not the port:
    a server on this machine may use another port each time.
    """
    try:
        parts = urlsplit(url or "")
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return "", url or "", ""
    host = "" if kind == MODEL else (parts.hostname or "")
    host = "localhost" if host in equality_rules.THIS_MACHINE else host
    dropped = (
        equality_rules.DROPPED_FROM_QUERY
        if kind == MODEL or is_model_host(host)
        else equality_rules.CREDENTIALS
    )
    # Sorted without the numbers of placeholders, which may differ now.
    kept = sorted((exact(name, []), exact(value, []), value) for name, value in pairs)
    query = [(name, exact(value, names)) for name, _, value in kept if name.lower() not in dropped]
    path = unquote(parts.path).rstrip("/")
    return host, exact(endpoint(path) if kind == MODEL else path, names), urlencode(query)


def _without_model(path: str, url: str | None, body: Any) -> str:
    named = mapping(body).get("model")
    model = None if named else model_of({}, url)
    return path.replace(model, "*") if model else path


def _sent(sent: dict[str, Any], names: list[str]) -> Any:
    """Return a non-JSON body without its length, which its boundary and its secrets change."""
    if type(sent.get("parts")) is list:
        return exact(
            {**sent, "bytes": None, "parts": [_unmeasured(part, "value") for part in sent["parts"]]}, names
        )
    return exact(_unmeasured(sent, "body"), names)


def _unmeasured(part: Any, text_key: str) -> Any:
    """Return the description of a part, without its size if its text is recorded."""
    return {**part, "bytes": None} if type(part) is dict and text_key in part else part
