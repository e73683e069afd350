"""A run that is answered up to a cut and live from there: what may act, and what it may cost."""
