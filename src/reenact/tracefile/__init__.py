"""Bytes to events: reads trace files, whole or damaged, ours or another dialect; never changes them.

Imports `wire` and the root modules.
"""
