"""From a value to a line on disk: encode, redact, write only what is new, append.

Imports `capture.redact`, `capture.runs`, options of `capture.front`, and the root modules.
"""
