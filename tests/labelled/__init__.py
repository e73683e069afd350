"""Small agents that fail in known places, and agents that pass: see README.md."""
