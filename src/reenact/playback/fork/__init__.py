"""A replay that continues live from a cut: what may run, what it may cost, what the world looked like.

Imports the other rooms of `playback`, `capture`, `supervise.workspace`, `money` and `recording`.
"""
