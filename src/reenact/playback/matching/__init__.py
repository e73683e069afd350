"""Which recorded call answers a request, and when its answer may be returned.

To begin with: ``tape`` has the recorded calls, ``frontier`` finds the one for a request, ``player`` returns
its answer in order. May import `recording`, `messages`, `capture` and `wire`, nothing else of `playback`.
"""
