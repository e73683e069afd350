"""LAYER 4: the commands."""
