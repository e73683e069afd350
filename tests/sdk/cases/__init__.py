"""The cases of each SDK. Importing them fills the table and imports no SDK."""

from . import (
    anthropic_messages,
    anthropic_other,
    bedrock,
    cohere_v2,
    google_genai,
    langchain,
    mistral,
    ollama_chat,
    openai_chat,
    openai_other,
    plain_http,
)

__all__ = [
    "anthropic_messages",
    "anthropic_other",
    "bedrock",
    "cohere_v2",
    "google_genai",
    "langchain",
    "mistral",
    "ollama_chat",
    "openai_chat",
    "openai_other",
    "plain_http",
]
