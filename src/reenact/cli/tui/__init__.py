"""The full-screen debugger: panes drawn with Textual around the session of ``cli/repl``."""
