"""From a recording back to something that can be sent: message lists."""
