"""Two runs, two sets of runs, or two moments of one run, side by side: where they differ, and why.

May import ``recording`` and what it stands on.
"""
