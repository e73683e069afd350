"""``reenact view`` as a process of its own, and requests to it."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from support.harness import finish, start


class Served:
    """A viewer that is running."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self.address, self.port, self.path = address, parts.port, parts.path
        self.token = parts.query.removeprefix("token=")
        self.cookie = f"reenact-{self.port}={self.token}"

    def get(
        self, path: str, method: str = "GET", *, cookie: bool = True, **headers: str
    ) -> http.client.HTTPResponse:
        """Send one request as it is spelled and return the answer, its body read into ``text``."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Host": f"127.0.0.1:{self.port}", **({"Cookie": self.cookie} if cookie else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        connection.close()
        return answer


@contextmanager
def served(*words: object, cwd: Path | None = None) -> Iterator[Served]:
    """Start the command and end it as Ctrl-C does; it must end cleanly, within a few seconds."""
    child = start("-m", "reenact", "view", *words, "--no-open", cwd=cwd)
    assert child.stdout is not None
    address = child.stdout.readline().strip()
    if not address:
        ended = finish(child)
        raise AssertionError(f"it did not start: {ended.err}")
    try:
        yield Served(address)
    finally:
        child.send_signal(signal.SIGINT)
        ended = finish(child, 60)
    assert (ended.code, ended.err) == (0, "Ctrl-C ends it.\n")
