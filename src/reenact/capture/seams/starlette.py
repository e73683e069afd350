"""Web applications of Starlette, FastAPI's among them: each request is a run of its own.

Nothing of a request is read ahead, held back or changed: what the application receives and sends is looked
at as it passes. Sockets and the lifespan are left alone, and so is a request inside of a run: it is a part of
that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import guard
from ..http.watch import Watch
from ..runs.current import current_run
from ..runs.web_request import HandledRun
from .patching import listen, need_arguments


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every application; returns what undoes it."""
    owner = module.Starlette
    need_arguments(owner, "__call__", "scope", "receive", "send")

    async def __call__(app: Any, original: Any, scope: Any, receive: Any, send: Any) -> None:
        run = None if watch.is_off else _begin(app, scope)
        if run is None:
            await original(app, scope, receive, send)
            return

        async def received() -> Any:
            message = await receive()
            _look(run.received, message)
            return message

        async def sent(message: Any) -> None:
            if type(message) is dict and message.get("type") == "http.response.start":
                run.http_status = message.get("status")
            await send(message)

        token = current_run.set(run)
        try:
            await original(app, scope, received, sent)
        except GeneratorExit as exc:  # dropped, maybe by the collector: no context variable is touched there
            _look(run.finish, exc)
            raise
        except BaseException as exc:
            _look(current_run.reset, token)
            _look(run.finish, exc)
            raise
        _look(current_run.reset, token)
        _look(run.finish, None)

    return listen(owner, {"__call__": __call__})


def _begin(app: Any, scope: Any) -> HandledRun | None:
    with guard.Swallowing("look at a request"):
        around = current_run.get()
        if scope["type"] != "http" or not (
            around is None or (isinstance(around, HandledRun) and around.is_over)
        ):
            return None
        return HandledRun(app, scope)
    return None


def _look(do: Callable[[Any], None], what: Any) -> None:
    with guard.Swallowing("look at a request"):
        do(what)
