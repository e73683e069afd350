"""Nothing reaches beyond loopback: an environment without keys, telemetry and look-ups, and a guard that proves it."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOOPBACK = {"127.0.0.1", "::1"}
LOOPBACK_NAMES = {None, *LOOPBACK, "localhost", b"127.0.0.1", b"::1", b"localhost"}
_guarding = False
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
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(DROPPED)}
    return {**kept, **SET, "SSL_CERT_FILE": str(_one_authority(folder))}


def _one_authority(folder: Path) -> Path:
    import certifi

    end = "-----END CERTIFICATE-----"
    first = Path(certifi.where()).read_text().partition("-----BEGIN")[2].partition(end)[0]
    few = folder / "one.pem"
    few.write_text(f"-----BEGIN{first}{end}\n")
    return few


@contextmanager
def guarded() -> Iterator[None]:
    """Within it this process may connect to loopback only."""
    global _guarding
    _hook_once()
    _guarding = True
    try:
        yield
    finally:
        _guarding = False


@functools.cache
def _hook_once() -> None:
    sys.addaudithook(_only_loopback)  # an audit hook stays for good, hence the switch


def _only_loopback(event: str, args: tuple[Any, ...]) -> None:
    if not _guarding:
        return
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in LOOPBACK:
        raise PermissionError(f"a test wants to connect to {args[1]}")
    if event == "socket.getaddrinfo" and args[0] not in LOOPBACK_NAMES:
        raise PermissionError(f"a test wants to look up {args[0]}")
