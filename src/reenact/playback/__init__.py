"""A recording put to use again: message lists, replay, forks, tests."""
