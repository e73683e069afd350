"""Runs in the agent's process during a replay: returns recorded answers instead of real calls, and guards
against side effects.
"""
