"""Where we listen: one file per library that carries model calls. Nothing here is imported before it is."""
