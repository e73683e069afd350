"""A recorded run executed again: matching, replay, fork, edits.

Imports `capture`, `recording` and `messages`.
"""
