"""pytest tests generated from recorded runs. Imports `testing` and `playback`."""
