"""One file per command; imported when the command runs. Imports what its command needs, of any room."""
