"""The real SDKs against the scripted provider: one table of cells, each played bare (and, beside it, recorded)."""
