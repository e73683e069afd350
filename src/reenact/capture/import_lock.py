"""The lock around everything that capture imports late, so that no child is forked in the middle of it.

A child forked while another thread imports a module can never import that module: nobody is there to
finish, and it waits for ever. So late imports of capture stand in ``with import_lock:``, and a fork waits
for them.
"""

from __future__ import annotations

import os
from _thread import RLock

_PATIENCE_S = 2.0
"""Nobody waits longer for another thread's import, so that this lock itself can never hang an agent."""

_lock = RLock()


class _ImportLock:
    """Re-entrant. Gives up waiting in the end: finalisers run in imports, and take locks of their own."""

    def __enter__(self) -> None:
        _lock.acquire(timeout=_PATIENCE_S)

    def __exit__(self, *_: object) -> None:
        _release()


import_lock = _ImportLock()


def _release() -> bool:
    """Release the lock; False if this thread had given up waiting for it."""
    try:
        _lock.release()
    except RuntimeError as exc:
        if exc.__traceback__ is not None and exc.__traceback__.tb_next is not None:
            raise  # not of the lock: a signal handler of the agent raised it meanwhile
        return False
    return True


def _release_in_child() -> None:
    global _lock
    if not _release():
        _lock = RLock()  # its owner does not exist here


os.register_at_fork(before=import_lock.__enter__, after_in_parent=_release, after_in_child=_release_in_child)
