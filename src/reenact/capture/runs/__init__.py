"""Which run an event belongs to, where its file is, and how a process begins, forks, crashes and ends."""
