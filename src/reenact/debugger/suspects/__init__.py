"""Suspects: what may have made a run go wrong, with confidence and evidence. May import what its room may."""
