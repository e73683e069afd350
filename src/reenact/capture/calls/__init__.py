"""Which call, lane and failure an event belongs to, while the agent runs."""
