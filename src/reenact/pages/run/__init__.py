"""The page of one run: its header, rows, cards, charts and player, for the viewer and as one file."""
