"""The parent process of `reenact run`: starts the agent, passes signals on, records how it ended.

Imports `capture` and `tracefile`.
"""
