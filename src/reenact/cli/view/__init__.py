"""Runs, turns, events and reports as text for `show`, `replay`, `fork` and others.

Imports `debugger`, `playback` and `money`.
"""
