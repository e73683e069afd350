"""Which recorded call answers a request, and when its answer may be returned."""
