"""Other tools in the same process: each goes on as if we were not there, and we record what we would alone."""
