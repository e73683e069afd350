"""Tracers that do not live in the environment of the other tests: `make test-neighbours`."""
