"""For tests of agents and of programs that read traces; works with any test runner.

``recorded()`` records a block and returns it as a Debugger, ``replaying()`` answers a block from a recording;
the ``assert_*`` functions show what a run did if it differs from what was expected; ``write_trace()`` writes
a trace file by hand. pytest has a marker and a fixture (``pytest_plugin``).

Imports `playback`, `debugger` and `capture`.
"""

from .assertions import (
    assert_no_errors,
    assert_tools_alike,
    assert_trajectory,
    assert_within,
    tools_of,
)
from .drive import Rerun, call, fork_command, replay_command, send
from .reenactment import Recorded, recorded, replaying, wrap
from .traces import write_trace

__all__ = [
    "Recorded", "Rerun", "assert_no_errors", "assert_tools_alike", "assert_trajectory", "assert_within",
    "call", "fork_command", "recorded", "replay_command", "replaying", "send", "tools_of", "wrap",
    "write_trace",
]  # fmt: skip
