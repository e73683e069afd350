"""Where a new run's file goes, and what its first line says.

Used by the front ends and by runs; nothing here loads the context machinery.
"""

from __future__ import annotations

import os
import sys
import time

from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..front.options import Options


RUN_VARIABLE = "REENACT_RUN"
"""``<run id> <writer> <stem>``: how a child process finds the run it belongs to."""


MAIN_VARIABLE = "REENACT_MAIN"
"""``<pid> <bytes>``: the process whose ``run.start`` the supervisor wrote, and how long that line is."""


def variable(name: str) -> str:
    """Return the value in the environment, now or when this process began; "" if none."""
    return os.environ.get(name) or _at_launch(name)


def _at_launch(name: str) -> str:
    install: Any = sys.modules.get("reenact.capture.seams.install")
    return str(install.launch_variables.get(name, "")) if install is not None else ""


shown: dict[str, tuple[str, str | None]] = {}
"""What this process has put into the environment for its children, and what was there before."""


replaying = False
"""True where a run is re-enacted: what the agent records into files of its own stands in others then."""


def elsewhere(path: str, run_id: str) -> str:
    """Return where a file that the agent names is written: in a replay beside the replay's own, since the
    path may be that of the recording itself."""
    if not replaying:
        return path
    if (path, run_id) not in _elsewhere:
        name = os.path.basename(path.rstrip("/")).removesuffix(".jsonl")
        _elsewhere[path, run_id] = in_folder(default_folder(), f"{name}-replay", run_id)
    return _elsewhere[path, run_id]


_elsewhere: dict[tuple[str, str], str] = {}


def parent_run() -> tuple[str, str, str]:
    """Return id, writer and stem of the run this process was started by; empty texts if there is none."""
    value = variable(RUN_VARIABLE)
    ours, before = shown.get(RUN_VARIABLE, (None, None))
    if value == ours:
        value = before or _at_launch(RUN_VARIABLE)
    run_id, w, stem = (*value.split(" ", 2), "", "", "")[:3]
    if not run_id or len(w) != 8 or not w.isalnum() or not os.path.isabs(stem):
        return ("", "", "")  # nothing, or nothing that we have announced
    run_id = run_id.replace("%00", "\0").replace("%20", " ").replace("%25", "%")
    return (run_id, w, stem)


def announcement(run_id: str, w: str, stem: str) -> str:
    """Return what parent_run() reads in a child; a run id may be any text."""
    quoted = run_id.replace("%", "%25").replace(" ", "%20").replace("\0", "%00")
    return f"{quoted} {w} {absolute(stem)}"


def is_main_process() -> bool:
    """True in the process that ``reenact run`` started itself."""
    return variable(MAIN_VARIABLE).partition(" ")[0] == str(os.getpid())


def is_begun_for_us(path: str) -> bool:
    """True if the file holds nothing but the head that the supervisor wrote for this process."""
    try:
        size = os.path.getsize(path)
    except OSError as exc:
        guard.pass_on(exc)
        return False
    return is_main_process() and variable(MAIN_VARIABLE).partition(" ")[2] == str(size)


def default_folder() -> str:
    """Return ``$REENACT_DIR`` or ``.reenact``, made on first use with a .gitignore of its own."""
    folder = variable("REENACT_DIR") or ".reenact"
    folder = absolute(folder)
    try:
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(os.path.join(folder, ".gitignore"), "x", encoding="ascii") as file:
                file.write("*\n")
    except FileExistsError:
        pass
    except OSError as exc:
        guard.pass_on(exc)
        guard.tell(
            f"folder:{folder}", f"could not make {folder} ({guard.explain(exc)}). Your agent is unaffected."
        )
    return folder


def absolute(path: str) -> str:
    """Return the path as seen from the root, since the agent may change directory while we record."""
    try:
        return os.path.join(os.getcwd(), path)
    except OSError:  # the folder we are in is gone
        return path


def current_folder() -> str | None:
    """Return where the agent runs; None if that folder is gone."""
    try:
        return os.getcwd()
    except OSError as exc:
        guard.pass_on(exc)
        return None


def new_file(path: str | None, name: str | None, run_id: str) -> str:
    """Return the file of a new run: the one that was named, or one in the named folder or the default one."""
    if path is None:
        return in_folder(default_folder(), name, run_id)
    path = elsewhere(path, run_id)
    return in_folder(path, name, run_id) if path.endswith("/") or os.path.isdir(path) else path


def in_folder(folder: str, name: str | None, run_id: str) -> str:
    """Return the path of a new run's file: sorted by time, found by name or id."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    label = "".join(char if char.isalnum() or char in "-_" else "-" for char in (name or "run"))[:40]
    safe = "".join(char if char.isalnum() or char in "-_" else "-" for char in run_id)
    # The beginning of an id of ours is random; ids of one's own may differ in their last letters only.
    safe = safe[:12] if len(safe) == 32 else safe[:80]
    return os.path.join(folder, f"{stamp}-{label}-{safe}.jsonl")


_commits: dict[str, str | None] = {}


def git_commit() -> str | None:
    """Return the commit checked out where the agent runs, read from the files; None outside a checkout."""
    try:
        folder = os.getcwd()
        if folder not in _commits:
            _commits[folder] = _read_commit(folder)
        return _commits[folder]
    except (OSError, ValueError) as exc:
        guard.pass_on(exc)
        return None


def _read_commit(folder: str) -> str | None:
    while not os.path.isdir(os.path.join(folder, ".git")):
        folder, was = os.path.dirname(folder), folder
        if folder == was:
            return None
    git = os.path.join(folder, ".git")
    with open(os.path.join(git, "HEAD"), encoding="ascii") as file:
        head = file.read(200).strip()
    if not head.startswith("ref: "):
        return head[:40] or None
    try:
        with open(os.path.join(git, head[5:]), encoding="ascii") as file:
            return file.read(40) or None
    except FileNotFoundError:
        with open(os.path.join(git, "packed-refs"), encoding="ascii") as file:
            lines = [line.split() for line in file]
        return next((line[0] for line in lines if line[1:] == [head[5:]]), None)


def notebook_name() -> str | None:
    """Return the name of the notebook whose kernel this process is, as Jupyter or VS Code state it."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or "ipykernel" not in sys.modules:
        return None  # the variable is also in the environment of programs that a notebook starts
    try:
        names = ipython.get_ipython().user_ns
        stated = names.get("__vsc_ipynb_file__"), names.get("__session__"), os.environ.get("JPY_SESSION_NAME")
        paths = [path for path in stated if type(path) is str and path.endswith(".ipynb")]
    except Exception as exc:
        guard.pass_on(exc)
        return None
    return os.path.basename(paths[0]).removesuffix(".ipynb") or None if paths else None


def start_fields(name: str | None, options: Options, **more: object) -> dict[str, object]:
    """Return what ``run.start`` says besides version and pid; absent is shorter than null."""
    fields: dict[str, object] = {
        "name": name or options.name,
        **more,
        "meta": options.meta,
        "host": os.uname().nodename,
    }
    if "parent_run" not in fields:
        fields["parent_run"] = parent_run()[0] or None
    return {key: value for key, value in fields.items() if value is not None}


# How a further process of a run was started: by this it is known again when the run is re-enacted.

_MAIN = "MainProcess"


def how_started() -> dict[str, Any]:
    """Return its command, and the name among its siblings that multiprocessing gave it, if it did."""
    fields: dict[str, Any] = {"command": [word[:200] for word in sys.orig_argv[:20]]}
    current_process = getattr(sys.modules.get("multiprocessing.process"), "current_process", None)
    if current_process is not None:
        name = current_process().name
        if type(name) is str and name != _MAIN:
            fields["process"] = name[:200]
    return fields
