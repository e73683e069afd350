"""Which recorded call answers what is asked now, and when its answer may be given."""
