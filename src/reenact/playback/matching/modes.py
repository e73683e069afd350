"""What follows a miss."""

STRICT, KEEP_GOING, REBASE, RECORD_MISSING = "strict", "keep-going", "rebase", "record-missing"
"""After a miss: the run is over; others keep their answers; a changed request gets what stood there; it goes
out, in a test that may do so."""
