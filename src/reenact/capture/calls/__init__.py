"""Which call, lane and failure an event belongs to, while the agent runs.

Imports `capture.recorder` and `wire`.
"""
