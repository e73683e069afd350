"""``reenact fork`` in its parts: one fork, one call, and many forks in a table."""
