"""Who gets an answer: a browser on this machine that was given the token, and nobody else.

Another site that a browser shows could send requests here too. It is refused by the name it used for us
(Host), by its own (Origin), and because the cookie is never sent with its requests (SameSite).
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..pages.document import STYLE, VIEWER_STYLE, style_hash

_LOOPBACK = frozenset(("127.0.0.1", "localhost", "[::1]"))
_HASHES = f"{style_hash(STYLE)} {style_hash(STYLE, VIEWER_STYLE)}"
HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {_HASHES}; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer: the page may load what this server has, and nothing else."""

NOT_ADMITTED = "Open the address that `reenact view` printed: it holds the token that this page needs.\n"


class Guard:
    """Lets requests through to the application, or answers them itself."""

    def __init__(self, app: ASGIApp, token: str, cookie: str) -> None:
        self._app = app
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page of ours opens a socket
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further; None lets it through."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _name(host) not in _LOOPBACK or len(headers.getlist("host")) != 1:
            return PlainTextResponse("This server answers only under the names of this machine.\n", 403)
        origin = headers.get("origin")
        if (origin is not None and origin != f"http://{host}") or _is_from_elsewhere(headers):
            return PlainTextResponse("This server answers only its own pages.\n", 403)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("This server only reads.\n", 405, {"Allow": "GET, HEAD"})
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if tokens:
            return self._admitted(scope, query) if self._is_token(tokens[0]) else _refused()
        return None if self._is_token(self._given(headers)) else _refused()

    def _admitted(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """Return the answer that moves the token from the address into a cookie."""
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/")  # two slashes would lead to another machine
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _given(self, headers: Headers) -> str:
        found: SimpleCookie = SimpleCookie()
        try:
            found.load(headers.get("cookie", ""))
        except CookieError:
            return ""
        return found[self._cookie].value if self._cookie in found else ""

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())


def _name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()


def _is_from_elsewhere(headers: Headers) -> bool:
    """True for a request that another site makes in the background; a link to us is followed to the token."""
    site = headers.get("sec-fetch-site", "none")
    return site not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate"


def _refused() -> Response:
    return PlainTextResponse(NOT_ADMITTED, 403)
