"""reenact: the flight recorder and time-travel debugger for LLM agents.

Importing this loads nothing: every public name is fetched on first use. (PYTEST_DONT_REWRITE: with its plugin
installed, pytest would warn below ``reenact run`` that we were here first.)
"""

# The rooms, from the agent to the desk; each says in its __init__ what it holds and what it may import:
#   wire/       provider wire formats, pure functions
#   capture/    inside the agent, standard library only: Trace, StepLog, Tap, seams, the recorder
#   supervise/  the parent process of `reenact run`
#   tracefile/  bytes -> events
#   recording/  one run understood: calls, turns, lanes
#   money/      usage -> prices
#   stats/      sums over one run or many
#   explain/    where a text came from, and what used it
#   debugger/   questions to a recording, and stepping through it
#   compare/    two runs, or two sets of runs, side by side
#   messages/   message lists rebuilt from a recording
#   playback/   a run executed again: matching, replay, fork, edits
#   testing/    replay inside a test; testgen/ writes such tests
#   cli/        the commands
# capture and tracefile meet only in schema.py, lines.py and totals.py.

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._version import __version__ as __version__
    from .capture.ambient.values import now as now
    from .capture.ambient.values import random as random
    from .capture.ambient.values import uuid as uuid
    from .capture.front.citations import Citation as Citation
    from .capture.front.citations import CitationStore as CitationStore
    from .capture.front.step_log import StepLog as StepLog
    from .capture.front.tap import Tap as Tap
    from .capture.front.trace import Trace as Trace
    from .capture.recorder.event_bus import EventBus as EventBus
    from .capture.redact.content_policy import private as private
    from .capture.runs.exit_and_fork import flush as flush
    from .capture.runs.run import RunContext as RunContext
    from .capture.runs.run import carry as carry
    from .capture.runs.run import run as run
    from .capture.seams.install import install as install
    from .capture.seams.install import uninstall as uninstall
    from .compare.diff import diff as diff
    from .debugger.debugger import Debugger as Debugger
    from .errors import UsageError as UsageError
    from .messages.rebuild import replay as replay
    from .pages.comparison.comparison_pages import write_html as write_html
    from .playback.experiment import experiment as experiment
    from .playback.forks import fork as fork
    from .playback.rerun import rerun as rerun
    from .recording.recording import Recording as Recording
    from .stats.many_runs import runs as runs
    from .testgen.generate import generate_test as generate_test
    from .tracefile.reader import read_events as read_events

_HOME = {
    "__version__": "_version",
    "Citation": "capture.front.citations",
    "CitationStore": "capture.front.citations",
    "Debugger": "debugger.debugger",
    "EventBus": "capture.recorder.event_bus",
    "Recording": "recording.recording",
    "RunContext": "capture.runs.run",
    "StepLog": "capture.front.step_log",
    "Tap": "capture.front.tap",
    "Trace": "capture.front.trace",
    "UsageError": "errors",
    "carry": "capture.runs.run",
    "diff": "compare.diff",
    "experiment": "playback.experiment",
    "flush": "capture.runs.exit_and_fork",
    "fork": "playback.forks",
    "generate_test": "testgen.generate",
    "install": "capture.seams.install",
    "now": "capture.ambient.values",
    "private": "capture.redact.content_policy",
    "random": "capture.ambient.values",
    "read_events": "tracefile.reader",
    "replay": "messages.rebuild",
    "rerun": "playback.rerun",
    "run": "capture.runs.run",
    "runs": "stats.many_runs",
    "uninstall": "capture.seams.install",
    "uuid": "capture.ambient.values",
    "write_html": "pages.comparison.comparison_pages",
}
_NOTEBOOK = {
    "html_of": "pages.notebook",
    "load_ipython_extension": "capture.front.notebook",
    "unload_ipython_extension": "capture.front.notebook",
}
"""What ``%load_ext reenact`` looks for, and what draws a result (``shown.py``); nothing for anybody else."""

__all__ = [
    "Citation", "CitationStore",
    "Debugger", "EventBus", "Recording", "RunContext", "StepLog", "Tap", "Trace", "UsageError",
    "carry", "diff", "experiment", "flush", "fork", "generate_test", "install", "now", "private", "random",
    "read_events", "replay", "rerun", "run", "runs", "uninstall", "uuid", "write_html",
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
