"""From a recording back to message lists that can be sent."""
