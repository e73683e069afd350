"""What model calls cost. Not loaded while recording.

Imports the root modules, `wire`, `tracefile` and `recording`.
"""
