"""Questions to a recording, the engine that steps through it in both directions, and the story `show` draws.

Imports `recording`, `stats` and `money`.
"""
