"""Someone at the prompt of ``reenact debug``: through a pseudo-terminal, a pipe, or -c."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

from support.typed import COMMAND, Typed, environment

PROMPT = "(reenact) "
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


def _sit_down():
    """In the child: the terminal is ours, and Ctrl-C means something (a background job ignores it)."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Terminal:
    """A pseudo-terminal with the command in it."""

    def __init__(self, *words, cwd=None, columns=80, rows=24, **env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        # env may give TERM or HOME; colour is taken out of what is read, unless raw() is asked.
        more = {"TERM": "xterm", "HOME": str(cwd), "XDG_STATE_HOME": ""} | env
        self.process = subprocess.Popen(
            [COMMAND, *map(str, words)], cwd=cwd, env=environment(**more), stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True, preexec_fn=_sit_down,
        )  # fmt: skip
        os.close(slave)
        self.raw = ""

    def until(self, wanted, seconds=100):
        """Read until a text appears; returns what was read."""
        data, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    got = os.read(self.master, 65536)
                except OSError:
                    got = b""
                if not got:
                    break
                data += got
            text = self._text(data)
            if wanted is not None and text.endswith((wanted, wanted + " ")):
                break
        self.raw = data.decode("utf-8", "replace")
        text = self._text(data)
        assert wanted is None or text.endswith((wanted, wanted + " ")), text
        assert "Traceback" not in text, text
        return text

    @staticmethod
    def _text(data):
        return _ESCAPES.sub("", data.decode("utf-8", "replace")).translate({13: None, 7: None})

    def do(self, line):
        """Type a line; returns what is shown before the next prompt."""
        self.keys(line + "\n")
        shown = self.until(PROMPT)
        return shown.removesuffix(PROMPT).partition("\n")[2]

    def keys(self, text):
        os.write(self.master, text.encode())

    def interrupt(self, *, waits=True):
        """Press Ctrl-C, when the command waits: readline misses a signal just before it begins to."""
        until, quiet = time.monotonic() + 60, 0
        while waits and quiet < 10 and time.monotonic() < until:
            state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            quiet = quiet + 1 if state == "S" else 0
            time.sleep(0.02)
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        """Wait for the end; returns the exit code."""
        try:
            return self.process.wait(100)
        finally:
            os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            os.close(self.master)


def piped(lines, *words, cwd=None, **env):
    """Give lines to the command's stdin."""
    done = subprocess.run(
        [COMMAND, "debug", *map(str, words)], cwd=cwd, input="\n".join(lines) + "\n", text=True,
        encoding="utf-8", env=environment(**env), capture_output=True, timeout=60,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "reenact has a bug" not in done.stderr, done.stderr
    return Typed(done.returncode, done.stdout, done.stderr)
