"""Snapshots of the agent's folder, taken by git in a process of the supervisor. Imports `capture`."""
