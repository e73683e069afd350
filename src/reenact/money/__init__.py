"""What model calls cost. Never loaded while recording; may import the root modules and ``wire``."""
