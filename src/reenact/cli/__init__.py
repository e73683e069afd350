"""The commands: they parse arguments, call the library and print. Nothing imports this room."""
