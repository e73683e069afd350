"""Suspects: what in a run may have made it go wrong, each with a confidence and evidence. Imports as ``debugger``."""
