"""Self-contained HTML pages: escaping, style, the document around them, and one module per page.

May import ``compare`` and what it stands on. A page on disk loads nothing: its policy allows one style
sheet and, for a large run, one script, by their hashes. Everything from a trace is cleaned and escaped in
``html.py`` and nowhere else.
"""
