"""One module per provider: its routes, its JSON, its stream, its errors."""
