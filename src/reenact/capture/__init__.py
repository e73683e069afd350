"""LAYER 1, inside the agent: stdlib only, never raises into it, never holds it up."""
