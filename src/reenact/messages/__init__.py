"""Message lists rebuilt from a recording, ready to be sent again. Imports `recording`."""
