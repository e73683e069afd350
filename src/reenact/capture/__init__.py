"""Recording, inside the agent.

Standard library only, never raises into the agent, never waits for anything; imports `wire` and the root
modules.
"""
