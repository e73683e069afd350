"""One run understood: its events, calls, turns, lanes, prompts and ending; every reader asks here.

Imports `tracefile`.
"""
