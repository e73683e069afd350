"""One event: its view, its whole request, its values, and the words for it on a screen.

Imports the rest of `tracefile`, except what reads whole files.
"""
