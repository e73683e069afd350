"""reenact: the flight recorder and time-travel debugger for LLM agents.

Importing this loads nothing: every public name is fetched on first use. (PYTEST_DONT_REWRITE: with its plugin
installed, pytest would warn below ``reenact run`` that we were here first.)
"""

# The rooms, from the agent to the desk (imports only ever point down this list's arrows):
#   capture/    inside the agent, stdlib only: Recorder and its front ends Trace, StepLog, Tap
#   wire/       provider wire formats, pure functions
#   tracefile/  bytes -> events: reader, recording, dialects, repair
#   money/      what model calls cost
#   figures/    one run in figures: sums, money, durations
#   debugger/   questions to a recording, and stepping through it
#   playback/   a run re-enacted: messages, replay, fork, tests
#   fleet/      many runs in figures
#   cli/        the commands
# capture and tracefile meet only in schema.py, lines.py and summary.py.

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._version import __version__ as __version__
    from .capture.ambient import now as now
    from .capture.ambient import random as random
    from .capture.ambient import uuid as uuid
    from .capture.bus import EventBus as EventBus
    from .capture.install import install as install
    from .capture.install import uninstall as uninstall
    from .capture.policy import private as private
    from .capture.registry import flush as flush
    from .capture.run import RunContext as RunContext
    from .capture.run import carry as carry
    from .capture.run import run as run
    from .capture.step_log import StepLog as StepLog
    from .capture.tap import Tap as Tap
    from .capture.trace import Trace as Trace
    from .debugger.debugger import Debugger as Debugger
    from .errors import UsageError as UsageError
    from .fleet.runs import runs as runs
    from .playback.rebuild.messages import replay as replay
    from .tracefile.reader import read_events as read_events
    from .tracefile.recording import Recording as Recording

_HOME = {
    "__version__": "_version",
    "Debugger": "debugger.debugger",
    "EventBus": "capture.bus",
    "Recording": "tracefile.recording",
    "RunContext": "capture.run",
    "StepLog": "capture.step_log",
    "Tap": "capture.tap",
    "Trace": "capture.trace",
    "UsageError": "errors",
    "carry": "capture.run",
    "flush": "capture.registry",
    "install": "capture.install",
    "now": "capture.ambient",
    "private": "capture.policy",
    "random": "capture.ambient",
    "read_events": "tracefile.reader",
    "replay": "playback.rebuild.messages",
    "run": "capture.run",
    "runs": "fleet.runs",
    "uninstall": "capture.install",
    "uuid": "capture.ambient",
}
_NOTEBOOK = {
    "load_ipython_extension": "capture.notebook",
    "unload_ipython_extension": "capture.notebook",
}
"""What ``%load_ext reenact`` looks for; nothing for anybody else."""

__all__ = [
    "Debugger", "EventBus", "Recording", "RunContext", "StepLog", "Tap", "Trace", "UsageError",
    "carry", "flush", "install", "now", "private", "random", "read_events", "replay", "run", "runs",
    "uninstall", "uuid",
]  # fmt: skip


def __getattr__(name: str) -> object:
    home = _HOME.get(name) or _NOTEBOOK.get(name)
    if home is None:
        raise AttributeError(f"module 'reenact' has no attribute {name!r}")
    module = __import__(f"reenact.{home}", fromlist=[name])
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
