"""How many processes of our control group the kernel has killed for memory."""

from __future__ import annotations

import os


def oom_kills(mounted: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int | None:
    """Return the count so far, for version 2 or 1 of control groups; None where nothing tells."""
    try:
        with open(own, encoding="utf-8") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file if line.count(":") >= 2]
    except (OSError, ValueError):
        return None
    for _, controllers, path in groups:
        if controllers == "":
            places = [(mounted, path, "memory.events"), (mounted, "/", "memory.events")]
        elif "memory" in controllers.split(","):
            root = os.path.join(mounted, "memory")
            places = [(root, path, "memory.oom_control"), (root, "/", "memory.oom_control")]
        else:
            continue
        for root, group, name in places:  # inside a container the group's path is often not there
            count = _count(os.path.join(root, group.lstrip("/"), name))
            if count is not None:
                return count
    return None


def _count(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
    except (OSError, ValueError, IndexError):
        return None
