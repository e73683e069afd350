"""Which run an event belongs to, where its file is, and how a process begins, forks, crashes and ends.

Imports `capture.recorder`, `capture.calls`, options of `capture.front`, and `capture.http` for web requests.
"""
