"""The page with the list of runs."""
