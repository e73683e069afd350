"""Where a text of a run came from, what used it, and which claims of an answer have a source.

Imports `recording`, `tracefile` and `wire`.
"""
