"""Which path speaks which dialect."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import plan, script
from .answers import Answer, Ask, Dialect, json_answer, refusal, speak, whole_answer
from .dialects import anthropic, bedrock, cohere, gemini, ollama, openai_other
from .dialects.anthropic import MESSAGES
from .dialects.openai_chat import CHAT
from .dialects.openai_responses import RESPONSES

Streamed = Callable[[Any], bool]


def _if_requested(body: Any) -> bool:
    return bool(body.get("stream"))


def _unless_declined(body: Any) -> bool:
    return bool(body.get("stream", True))


def _always(body: Any) -> bool:
    return True


def _never(body: Any) -> bool:
    return False


TALK: list[tuple[str, Dialect, Streamed]] = [
    (r"/v1/messages", MESSAGES, _if_requested),
    (r"(/v1)?/chat/completions", CHAT, _if_requested),
    (r"(/v1)?/responses", RESPONSES, _if_requested),
    (r"/v1(beta|alpha)?/models/[^/]+:generateContent", gemini.GENERATE, _never),
    (r"/v1(beta|alpha)?/models/[^/]+:streamGenerateContent", gemini.GENERATE, _always),
    (r"/model/.+/converse", bedrock.CONVERSE, _never),
    (r"/model/.+/converse-stream", bedrock.CONVERSE, _always),
    (r"/model/.+/invoke", bedrock.INVOKE, _never),
    (r"/model/.+/invoke-with-response-stream", bedrock.INVOKE, _always),
    (r"/api/(chat|generate)", ollama.CHAT, _unless_declined),
    (r"/v2/chat", cohere.CHAT, _if_requested),
]


def echo(ask: Ask) -> Answer:
    """What was asked, as JSON."""
    return json_answer({"method": ask.method, "query": ask.query, "body": ask.body.decode("latin-1")})


def page(ask: Ask) -> Answer:
    return whole_answer(b"<!doctype html><title>Hills</title><p>Seven.</p>\n", "text/html; charset=utf-8")


OTHER: list[tuple[str, Dialect, Callable[[Ask], Answer]]] = [
    (r"/v1/messages/count_tokens", MESSAGES, anthropic.count_tokens),
    (r"/v1/messages/batches(/.+)?", MESSAGES, anthropic.batches),
    (r"(/v1)?/embeddings", CHAT, openai_other.embeddings),
    (r"(/v1)?/files(/.+)?", CHAT, openai_other.files),
    (r"(/v1)?/batches(/.+)?", CHAT, openai_other.batches),
    (r"(/v1)?/models", CHAT, openai_other.models),
    (r"/v1(beta|alpha)?/models/[^/]+:countTokens", gemini.GENERATE, gemini.count_tokens),
    (r"/v1(beta|alpha)?/models/[^/]+:batchEmbedContents", gemini.GENERATE, gemini.embed),
    (r"/api/embed", ollama.CHAT, ollama.embed),
    (r"/echo", CHAT, echo),
    (r"/page", CHAT, page),
]


def answer_to(ask: Ask) -> Answer:
    for pattern, dialect, streamed in TALK:
        if re.fullmatch(pattern, ask.path):
            body = ask.json()
            if "plan" in ask.scenario:
                turn = plan.turn(body, ask.scenario.path.rpartition(".")[2])
            else:
                turn = script.turn(ask.scenario, dialect.rounds(body))
            return refusal(dialect, ask) or speak(dialect, ask, turn, body, streamed=streamed(body))
    for pattern, dialect, handler in OTHER:
        if re.fullmatch(pattern, ask.path):
            return refusal(dialect, ask) or handler(ask)
    return json_answer({"error": f"no route {ask.path}"}, 404)
