"""Pages that compare two runs or two moments of a run."""
