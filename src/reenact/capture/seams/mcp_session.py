"""What an MCP session asks besides tools: the handshake, lists, resources, prompts.

Each is one event with what the server said, so that a replay needs no server. One that says the same again,
as a list of tools that is asked for at every turn, says so in a few words.
"""

from __future__ import annotations

from time import perf_counter
from weakref import WeakKeyDictionary

from ... import protocols, schema
from .. import guard
from ..import_lock import import_lock
from .mcp_transport import line_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from ..recorder import Recorder
    from ..watch import Watch
    from .mcp_transport import Line

GREETINGS = ("initialize", "server/discover")
"""What they say of the client differs from version to version, and makes no difference."""
_SHORT = 200
_MOST = 500
_said: WeakKeyDictionary[Recorder, dict[tuple[str, ...], bytes]] = WeakKeyDictionary()
"""The digest of what was last said, by writer, server, method and parameters."""


class Question:
    """A request that calls no tool, of a session whose server is known."""

    def __init__(self, watch: Watch, line: Line, method: str, params: Any) -> None:
        self._line = line
        self._method = method
        self._params = params
        self._recorder = watch.recorder()
        self._began = perf_counter()

    def instead(self) -> None:
        """Have the stand-in say what was said then, or ask the real server."""
        if protocols.responder is None or self._line.stand_in is None:
            return
        asked = protocols.AskedServer(self._line.server, self._method, self._params, self._recorder)
        reply = protocols.responder.of_server(asked)
        self._line.stand_in.expect(self._method, self._params, reply)

    def answered(self, result: Any) -> None:
        self._tell("result", plain(result))

    def refused(self, exc: BaseException) -> None:
        error = getattr(exc, "error", None)
        if hasattr(error, "code"):  # else it is not the server who said it
            self._tell("refused", plain(error))

    def _tell(self, name: str, said: Any) -> None:
        fields: dict[str, Any] = {"server": self._line.server, "method": self._method}
        if self._params:
            fields["params"] = self._params
        fields["duration_ms"] = round((perf_counter() - self._began) * 1000, 3)
        is_same, key, digest = self._is_same(name, said)
        fields.update({"same": True} if is_same else {name: said})
        if self._recorder.emit(schema.MCP_ANSWER, fields) and not is_same:
            known = _said.setdefault(self._recorder, {})
            if len(known) >= _MOST:
                known.clear()
            known[key] = digest

    def _is_same(self, name: str, said: Any) -> tuple[bool, tuple[str, ...], bytes]:
        with import_lock:
            from hashlib import blake2b

            from ...lines import dumps

        text = dumps(said)
        key = (self._recorder.w, self._line.server, self._method, dumps(self._params))
        digest = blake2b(f"{name} {text}".encode(), digest_size=16).digest()
        is_same = len(text) > _SHORT and _said.get(self._recorder, {}).get(key) == digest
        return is_same, key, digest


async def asked(
    watch: Watch, session: Any, method: str | None, params: Any, ask: Callable[[], Awaitable[Any]]
) -> Any:
    """Ask something that is no tool call, and record what is said."""
    question = _question(watch, session, method, params)
    if question is None:
        return await ask()
    question.instead()
    try:
        result = await ask()
    except Exception as exc:
        _carefully(question.refused, exc)
        raise
    _carefully(question.answered, result)
    return result


def _question(watch: Watch, session: Any, method: str | None, params: Any) -> Question | None:
    try:
        line = None if watch.is_off or method is None else line_of(session)
        if line is None or method is None:
            return None
        return Question(watch, line, method, None if method in GREETINGS else parameters(params))
    except Exception as exc:
        guard.swallow("look at a request of an MCP session", exc)
        return None


def _carefully(tell: Callable[[Any], None], said: Any) -> None:
    try:
        tell(said)
    except Exception as exc:
        guard.swallow("record what an MCP server said", exc)


def let_through(session: Any, method: str, params: Any) -> None:
    """Have a tool called of the real server, which is started for it."""
    line = line_of(session)
    if line is not None and line.stand_in is not None:
        line.stand_in.expect(method, parameters(params), None)


def plain(value: Any) -> Any:
    """Return a model of the library as JSON has it."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return value


def parameters(params: Any) -> Any:
    """Return what a request asks, without what is about the request itself."""
    told = plain(params)
    return (
        {name: value for name, value in told.items() if name != "_meta"} if isinstance(told, dict) else told
    )
