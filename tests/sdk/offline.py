"""Nothing reaches beyond loopback: an environment without keys, telemetry and look-ups, and a guard that proves it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
DROPPED = (
    *("ANTHROPIC_", "OPENAI_", "GOOGLE_", "GEMINI_", "AWS_", "CO_API_", "COHERE_", "MISTRAL_", "OLLAMA_"),
    *("LANGCHAIN_", "LANGSMITH_", "BEDROCK_", "AZURE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
)
SET = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_DEFAULT_REGION": "us-east-1",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "*",
}


def environment(folder: Path) -> dict[str, str]:
    """The environment for a program that uses SDKs; `folder` keeps a small file of certificates.

    Clients load every certificate authority when they are made, though they speak plain HTTP here: one is enough.
    """
    import certifi

    end = "-----END CERTIFICATE-----"
    first = Path(certifi.where()).read_text().partition("-----BEGIN")[2].partition(end)[0]
    few = folder / "one.pem"
    few.write_text(f"-----BEGIN{first}{end}\n")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(DROPPED)}
    return {**kept, **SET, "SSL_CERT_FILE": str(few)}


def guard() -> None:
    """From here on this process may connect to loopback only; there is no way back."""
    sys.addaudithook(_only_loopback)


def _only_loopback(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in LOOPBACK:
        raise PermissionError(f"a test wants to connect to {args[1]}")
    if event == "socket.getaddrinfo" and args[0] not in {None, *LOOPBACK, b"127.0.0.1", b"localhost"}:
        raise PermissionError(f"a test wants to look up {args[0]}")
