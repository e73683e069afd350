"""Many runs at once: their facts, sums, percentiles and groups, from the raw files."""
