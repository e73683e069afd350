"""The cases of each SDK. Importing them fills the table and imports no SDK."""

from . import anthropic_messages, anthropic_other

__all__ = ["anthropic_messages", "anthropic_other"]
