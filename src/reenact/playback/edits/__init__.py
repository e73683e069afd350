"""The changes a fork makes to requests, responses and tool results, for every provider.

Imports `playback.matching` and `wire`.
"""
