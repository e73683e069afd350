"""Questions to a recording, and the engine that steps through it in both directions.

Imports `recording` and `stats`.
"""
