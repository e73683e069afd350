"""The turn view of a run: what was new in the prompt, the answer, the tools and what it all cost."""
