"""Clock, ids and random numbers of the agent, recorded so that a replay returns the same."""
