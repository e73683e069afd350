"""Fingerprints of requests, to match the requests of a replay with those of its recording.

Three levels: L0 is the request as sent, L1 its content (``rules`` lists what makes no difference), L2 its
outline, to find the nearest one. Bodies must be redacted first, as the recording was.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ...wire import reading
from ...wire.equality_rules import (
    CREDENTIALS,
    DROPPED_FROM_QUERY,
    PLACEHOLDER,
    THIS_MACHINE,
    VERSION,
    exact,
    pairing,
    skeleton,
    without_addresses,
)
from ...wire.json_values import canonical, mapping
from ...wire.messages import role_of
from ...wire.providers import ollama
from ...wire.reading import conversation_key, model_of
from ...wire.routes import endpoint, is_model_host, plain_path

# Digests of the parts of a request, each computed once: a conversation is sent again with every turn.

_MOST_BYTES = 64 << 20
"""Bytes of remembered parts; then the memory starts empty again."""

Computed = TypeVar("Computed")


class Memo(Generic[Computed]):
    """What was computed for a value, looked up by the value's ``marshal`` bytes.

    They cost a fraction of its JSON and distinguish 1, 1.0 and true; they are never loaded.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Computed] = {}
        self._size = 0

    def get(self, value: Any, compute: Callable[[], Computed]) -> Computed:
        try:
            key = marshal.dumps(value, 2)
        except ValueError:  # not plain JSON
            return compute()
        found = self._known.get(key)
        if found is None:
            found = compute()
            self._size += len(key)
            if self._size > _MOST_BYTES:
                self._known, self._size = {}, len(key)
            self._known[key] = found
        return found


class Part(NamedTuple):
    """One message, or one other key of a request."""

    exactly: bytes
    """Digest of the part as sent."""
    normal: bytes
    """Digest of its normal form, without ids."""
    ids: tuple[str, ...]


_memo = Memo[Part]()


def element_part(element: Any) -> Part:
    """Return the digests of one element of a conversation."""
    return _memo.get(element, lambda: _computed(element))


def key_part(key: str, value: Any) -> Part:
    """Return the digests of one key of a request besides its conversation."""
    return _memo.get((key, value), lambda: _computed({key: value}, top=True))


def _computed(value: Any, *, top: bool = False) -> Part:
    ids: list[str] = []
    normal = canonical(skeleton(value, ids, top=top))
    digests = [blake2b(text.encode(), digest_size=16).digest() for text in (canonical(value), normal)]
    return Part(digests[0], digests[1], tuple(ids))


MODEL, TOOL, HTTP = "model", "tool", "http"
"""Kinds of calls. A call of an MCP session is ``tool``; embeddings, files and the like are ``http``."""

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
        who: str | None = None,
        tool_id: str | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        """The HTTP method, or the tool's name."""
        self.url = url
        self.body = body
        self.sent = sent
        self._parts = parts
        """The digests of its conversation, where they are known."""
        self.who = who
        """The thread, task or work item that makes it, None if that is not known."""
        self.tool_id = tool_id
        """The provider's id of the tool use that a tool call is for, None if that is not known."""

    @classmethod
    def tool(cls, name: str, args: Any, who: str | None = None, tool_id: str | None = None) -> Request:
        """Return the request of a tool call."""
        return cls(TOOL, name, without_addresses(args), who=who, tool_id=tool_id)

    def without_upload(self) -> Request:
        """Return the same request without its non-JSON body."""
        return Request(self.kind, self.name, self.body, url=self.url)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        if self.kind == TOOL:
            return _of_tool(self.name, self.body)
        body, sent = self._content()
        if self.kind == MODEL and type(body) is dict:
            key = conversation_key(body)
            parts = self._parts or ([] if key is None else [element_part(element) for element in body[key]])
            rest = {name: value for name, value in body.items() if name != key}
            return of_parts(self.name, self.url, rest, key, parts, sent=sent)
        names: list[str] = []
        normal = [canonical(exact(body, names)).encode()]
        kind = MODEL if self.kind == MODEL else HTTP
        return _print(kind, self.name, self.url, body, normal, [canonical(body).encode()], names, sent)

    def _content(self) -> tuple[Any, dict[str, Any] | None]:
        """Return the JSON of the request and the description of any other body.

        JSON that was read while it was sent, or before its host was known to serve models, is in ``sent``.
        """
        if self.body is None and self.sent is not None and not self.sent.get("cut"):
            if type(self.sent.get("body")) in (dict, list):
                return self.sent["body"], None
        return self.body, self.sent

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles of its messages."""
        key = conversation_key(self.body) if self.kind == MODEL else None
        return () if key is None else tuple(map(role_of, self.body[key]))

    @property
    def size(self) -> int | None:
        """The number of messages, None without a conversation."""
        return conversation_size(self.body) if self.kind == MODEL else None

    def placeholders(self) -> list[str]:
        """Return the placeholders of its secrets, in an order that is the same for equal requests."""
        names: list[str] = []
        self.plain(names)
        return [name for name in names if PLACEHOLDER.fullmatch(name)]

    def plain(self, names: list[str] | None = None) -> Any:
        """Return all that counts as one value, to compare leaf by leaf; ids are added to ``names``."""
        names = [] if names is None else names
        if self.kind == TOOL:
            return {"tool": self.name, "args": exact(self.body, names)}
        value, sent = self._content()
        body = skeleton(value, names, top=True) if self.kind == MODEL else exact(value, names)
        host, path, query = _place(self.url, self.kind, names)
        whole: dict[str, Any] = {"path": path}
        if self.kind != MODEL:
            whole |= {"host": host, "query": query}
        if is_stream_request(self.url, value):
            whole["stream"] = True
        if sent is not None:
            whole["sent"] = _sent(sent, names)
        return {**whole, **body} if type(body) is dict else {**whole, "body": body}


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
    kind: str,
    method: str,
    url: str | None,
    body: Any,
    normal: list[bytes],
    exactly: list[bytes],
    names: list[str],
    sent: dict[str, Any] | None,
) -> Fingerprint:
    host, path, query = _place(url, kind, names)
    normal.insert(0, f"{VERSION}\n{kind}\n{method.upper()}\n{host}{path}?{query}\n".encode())
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
    whole = canonical([VERSION, TOOL, name, exact(args, names)]) + pairing(names)
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
    if plain_path(path) != path:
        return True
    wanted = mapping(body).get("stream")
    return wanted is True or (wanted is None and path.endswith(ollama.ENDPOINTS))


def conversation_size(body: Any) -> int | None:
    """Return the number of elements of the conversation in a body."""
    key = conversation_key(body)
    return len(body[key]) if key is not None else None


def tools_of(body: Any) -> tuple[str, ...]:
    """Return the names of the tools a request offers, sorted."""
    offered = (mapping(body).get(key) for key in reading.TOOLS)
    return tuple(sorted(name for tools in offered if tools for name in reading.tool_names(tools)))


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
    host = "localhost" if host in THIS_MACHINE else host
    dropped = DROPPED_FROM_QUERY if kind == MODEL or is_model_host(host) else CREDENTIALS
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


# Uploads cut short: a recorded call may have been cancelled before its whole body was sent. How much was sent
# by then depends on the machine, so it does not count.


def is_beginning(cut: dict[str, Any], whole: dict[str, Any]) -> bool:
    """True if a body cut short may be the beginning of another one.

    Both have the form of ``sent`` in an event (docs/format.md). Binary data is compared by size only.
    """
    if not cut:
        return True  # nothing was sent
    if cut.get("type") != whole.get("type"):
        return False
    if type(cut.get("parts")) is not list:
        return _is_text_beginning(cut, whole, "body")
    begun, parts = cut["parts"], whole.get("parts")
    if type(parts) is not list or len(begun) > len(parts):
        return False
    if not begun:
        return True
    *finished, last = zip(begun, parts, strict=False)
    return all(_same_part(one, other) for one, other in finished) and _is_part_beginning(*last)


def _is_part_beginning(cut: Any, whole: Any) -> bool:
    if type(cut) is not dict or type(whole) is not dict:
        return False
    names = ("name", "filename", "type")
    same_head = [cut.get(name) for name in names] == [whole.get(name) for name in names]
    return same_head and _is_text_beginning(cut, whole, "value")


def _is_text_beginning(cut: dict[str, Any], whole: dict[str, Any], key: str) -> bool:
    begun, text = cut.get(key), whole.get(key)
    if type(begun) is not str or type(text) is not str:
        return _size(cut) <= _size(whole)
    return "<redacted:" in begun + text or text.startswith(begun)  # half a secret is not recognised as one


def _size(sent: dict[str, Any]) -> int:
    size = sent.get("bytes")
    return size if type(size) is int else 0


def _same_part(one: Any, other: Any) -> bool:
    """True if two parts are equal except for the numbers of their secrets."""
    if type(one) is not dict or type(other) is not dict:
        return False
    is_text = "value" in one and "value" in other
    sizes = {"bytes": None} if is_text else {}
    return bool(exact({**one, **sizes}, []) == exact({**other, **sizes}, []))
