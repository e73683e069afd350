"""What follows a miss."""

STRICT, KEEP_GOING, REBASE = "strict", "keep-going", "rebase"
"""After a miss: the run is over; others keep their answers; a changed request gets what stood there."""
