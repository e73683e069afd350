"""Clock, ids and random numbers of the agent, recorded so that a replay returns the same.

Imports `capture.recorder`, `capture.runs` and the patching of `capture.seams`.
"""
