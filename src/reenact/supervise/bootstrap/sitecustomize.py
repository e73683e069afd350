"""Every Python below ``reenact run`` begins here: it waits for known libraries, and gets out of the way.

The folder stands first on PYTHONPATH, for child processes too. A sitecustomize of the host's own, which this
one hides, runs next, and nothing of ours stays on ``sys.path``. Written so that any Python can read it.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))


class _Home:
    """Finds reenact where this file is, for a Python that has not got it installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "reenact":
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [_PACKAGES])


sys.path[:] = [folder for folder in sys.path if folder != _HERE]
if "REENACT_REPLAY" in os.environ:
    os.environ["REENACT_OFF"] = "0"  # switched off by the agent, nobody would answer, and it would be live
if os.environ.get("REENACT_OFF") != "1" and sys.version_info >= (3, 11):
    sys.meta_path.append(_Home)
    try:
        from reenact.capture.seams.coverage import come_first
        from reenact.capture.seams.install import wait_for_libraries

        wait_for_libraries(_HERE)
        if "REENACT_REPLAY" in os.environ:
            from reenact.playback.replay.start import begin_here

            begin_here()
    except Exception as exc:
        why = type(exc).__name__ + ": " + str(exc)
        if "REENACT_REPLAY" in os.environ:  # unanswered, it would call models and tools for real
            sys.stderr.write("reenact: the recording cannot answer here (" + why + "); nothing was run.\n")
            os._exit(2)
        sys.stderr.write("reenact: nothing is recorded in this process (" + why + ").\n")

_ours = sys.modules.pop("sitecustomize")
try:
    __import__("sitecustomize")
except ImportError as exc:
    if getattr(exc, "name", "sitecustomize") != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", _ours)
    if "come_first" in globals():
        come_first()
