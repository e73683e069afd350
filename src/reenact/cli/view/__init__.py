"""Runs, turns, events and figures as text or JSON for `show`, `stats` and others."""
