"""Recorded answers in the form each library expects them, while a run is replayed."""
