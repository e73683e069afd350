"""A replay that continues live from a cut: what may run, what it may cost, what the world looked like."""
