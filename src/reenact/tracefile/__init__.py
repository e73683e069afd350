"""LAYER 2: bytes -> events. Stdlib only."""
