"""Older versions of what we listen to: each in an environment of its own, played bare and recorded. `make test-versions`."""
