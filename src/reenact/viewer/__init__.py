"""``reenact view``: a web server on this machine for the pages of runs. It reads and never writes.

May import ``pages``, ``debugger`` and what they stand on. ``guard.py`` decides who gets an answer,
``open_runs.py`` keeps runs open, ``server.py`` has the addresses; all HTML is made in ``pages``.
"""
