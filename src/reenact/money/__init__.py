"""What model calls cost. Not loaded while recording; may import the root modules, ``wire``, ``tracefile``."""
