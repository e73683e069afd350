"""Signals for the supervised agent: what was sent to us alone is passed on, what it got itself is not.

The agent is in our process group, so that terminal and job control work as without us. Ctrl-C, or a kill of
the group, reaches both; passed on as well it would count twice, and many programs take a second one as "now".

``sigwaitinfo`` does not tell the two apart: it knows what the terminal sent (``si_code`` 128), but a kill of
the group, as ``timeout`` and process managers send it, looks like one of this process alone (0). Hence a
process that only listens.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import NoReturn

PASSED_ON = frozenset(
    getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH",
                 "SIGTSTP", "SIGCONT", "SIGIO", "SIGPWR")
    if hasattr(signal, name)
)  # fmt: skip
WAITED_FOR = PASSED_ON | {signal.SIGCHLD}

PATIENCE_S = 0.1
"""How long the listener has to hear of a signal that went to the whole group."""
STALE_S = 1.0


class Relay:
    """Tells by a process that only listens whether the whole group got a signal."""

    def __init__(self) -> None:
        self._heard: list[tuple[int, float]] = []
        self._reports, report = os.pipe()
        try:
            if os.fork() == 0:
                try:
                    os.close(self._reports)
                    _listen(report)
                finally:
                    os._exit(1)
        except BlockingIOError:
            pass  # no process to be had: every signal is passed on then
        os.close(report)

    def pass_on(self, number: int, pid: int) -> None:
        """Send a signal of ours to the agent, unless it has got it already; stop with it if it is to stop."""
        if not self._went_to_group(number):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return  # it has ended: SIGCHLD is on its way
        if number == signal.SIGTSTP:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
            os.kill(os.getpid(), number)
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    def _went_to_group(self, number: int) -> bool:
        until = time.monotonic() + PATIENCE_S
        while True:
            for heard, at in self._heard:
                if heard == number and until - at < STALE_S:
                    self._heard.remove((heard, at))
                    return True
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._reports], [], [], left)[0]:
                return False
            numbers = os.read(self._reports, 64)
            if not numbers:  # the listener was killed: what it would have heard is not known
                return False
            now = time.monotonic()
            self._heard = [(number, now) for number in numbers] + self._heard[:64]


def handles(pid: int, number: int) -> bool:
    """True if a process has a handler for a signal, as far as Linux shows; False if unknown."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
    except (OSError, StopIteration, ValueError, IndexError):
        return False


def _listen(report: int) -> NoReturn:
    """Report the number of every signal until the supervisor is gone."""
    for fd in (0, 1, 2):  # nobody shall wait for the end of a pipe because of us
        try:
            os.close(fd)
        except OSError:
            pass
    heard, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in PASSED_ON:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    poll = select.poll()
    poll.register(heard, select.POLLIN)
    poll.register(report, 0)  # an error on it: the other end is closed
    while True:
        for fd, _ in poll.poll():
            if fd == report:
                os._exit(0)
            os.write(report, os.read(heard, 64))
