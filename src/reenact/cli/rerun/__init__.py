"""Starting a recorded agent again and reporting what happened, for `replay` and `fork`."""
