"""Self-contained HTML pages: escaping, style, the document around them, and one module per page.

May import ``compare`` and what it stands on. A page has no script and loads nothing: its policy allows one
style sheet, by its hash. Everything from a trace is cleaned and escaped in ``html.py`` and nowhere else.
"""
