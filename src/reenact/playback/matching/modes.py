"""What follows a miss: a request that the recording does not answer."""

from __future__ import annotations

STRICT, KEEP_GOING, REBASE, RECORD_MISSING = "strict", "keep-going", "rebase", "record-missing"
"""After a miss: the run ends; other requests are still answered; a changed request gets the recorded answer
of its place; it is sent to the provider, in a test that allows it."""
