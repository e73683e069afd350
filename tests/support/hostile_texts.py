"""Texts that a page must show and never obey."""

from __future__ import annotations

BIDI = "\u202e\u2066\u200f"
HOSTILE = [
    "<script>window.pwned = 1</script>",
    "</pre></main><script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned = 1">',
    "<svg onload='window.pwned = 1'><animate onbegin='window.pwned = 1'/></svg>",
    '<a href="javascript:window.pwned = 1">click</a>',
    "<style>*{background:url(https://example.com/leak)}</style>",
    '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe>',
    '<meta http-equiv="refresh" content="0;url=https://example.com/">',
    "<!--", "]]>", "</title><base href=https://example.com/>", "{{7*7}}", "\x1b]0;title\x07", f"abc{BIDI}def",
    "<details open ontoggle=window.pwned=1>", "\ud800 lone", "x" * 300_000,
]  # fmt: skip
ALL = "\n".join(HOSTILE)
