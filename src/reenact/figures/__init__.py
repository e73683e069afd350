"""One run in figures: what is summed up of its calls, from its events as they come."""
