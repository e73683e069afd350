"""A documentation agent reads a guide on errors; nothing fails."""

from kit import Agent

GUIDE = """# Error handling guide
An HTTP 500 or 503 from the gateway means the upstream failed. On `ConnectionError` retry twice, then raise
`UpstreamUnavailable`. Never swallow exceptions: "error: null" in a log line hides the traceback. Timeouts are 8 s.
"""


def search_docs(query: str) -> list:
    return [{"title": "Error handling guide", "path": "runbooks/errors.md", "score": 0.93}]


def read_doc(path: str) -> str:
    return GUIDE


MODEL = [
    ("search_docs", {"query": "upstream failures retry policy"}),
    ("read_doc", {"path": "runbooks/errors.md"}),
    "The guide asks for two retries on ConnectionError and then UpstreamUnavailable; timeouts are 8 s.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(search_docs, read_doc, wire="messages").run(
            "What does our runbook say about failures of the upstream?"
        )
    )
