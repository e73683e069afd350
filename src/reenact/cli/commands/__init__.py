"""One file per command; imported when the command runs."""
