"""Layer 2: bytes -> events. Reads trace files, whole or damaged, ours or a dialect; never changes them."""
