"""What recording costs, as ratios against named alternatives measured in the same run (``make bench``).

Nothing here is a test: machines differ, ratios within one run hold. See README.md for how to read it.
"""
