"""In the agent's process: everything it asks is answered by a recording, and nothing is done twice."""
