"""The parts of `reenact fork`: one fork, one call, tables of many forks."""
