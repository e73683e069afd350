"""In the agent's process during a replay: recorded answers instead of real calls, and the guard against
side effects.
"""
