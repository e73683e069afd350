"""Runs in the agent's process during a replay: returns recorded answers instead of real calls, and guards
against side effects. ``start`` is where it begins, ``responder`` answers, ``report`` is what comes back.

Imports `playback.matching`, `playback.serve`, `capture`, `messages`, `recording`; in a fork `playback.fork`.
"""
