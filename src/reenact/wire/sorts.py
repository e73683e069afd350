"""Calls to a model API that ask no model for an answer: their sort, told by the path, and what they used.

Pure. Used by routes.py. They are never turns.
"""

from __future__ import annotations

from .values import count, mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

EMBEDDINGS, TOKENS, BATCH, FILES = "embeddings", "tokens", "batch", "files"
MODELS, MODERATION, RERANK, OCR = "models", "moderation", "rerank", "ocr"
IMAGES, AUDIO, VIDEO, STORED = "images", "audio", "video", "stored"

ANYWHERE = (
    ("/embeddings", EMBEDDINGS),
    (":embedContent", EMBEDDINGS),
    (":batchEmbedContents", EMBEDDINGS),
    ("/api/embed", EMBEDDINGS),
    ("/api/embeddings", EMBEDDINGS),
    ("/v1/embed", EMBEDDINGS),
    ("/v2/embed", EMBEDDINGS),
    ("/count_tokens", TOKENS),
    ("/count-tokens", TOKENS),
    ("/input_tokens", TOKENS),
    (":countTokens", TOKENS),
    (":computeTokens", TOKENS),
    (":batchGenerateContent", BATCH),
    (":asyncBatchEmbedContent", BATCH),
)
"""Endings of paths that nothing else has, whatever the host."""
_ENDINGS = (
    ("/tokenize", TOKENS),
    ("/detokenize", TOKENS),
    ("/rerank", RERANK),
    ("/moderations", MODERATION),
    ("/classifications", MODERATION),
    ("/classify", MODERATION),
    ("/ocr", OCR),
    ("/v2/parse", OCR),
    (":predictLongRunning", VIDEO),
    (":fetchPredictOperation", VIDEO),
    ("/responses/compact", STORED),
    ("/api/tags", MODELS),
    ("/api/show", MODELS),
    ("/api/ps", MODELS),
)
_WORDS = (
    ("batches", BATCH), ("batch", BATCH), ("batchPredictionJobs", BATCH), ("embed-jobs", BATCH),
    ("async-invoke", BATCH), ("files", FILES), ("uploads", FILES), ("fileSearchStores", FILES),
    ("guardrail", MODERATION), ("guardrail-checks", MODERATION), ("images", IMAGES), ("audio", AUDIO),
    ("videos", VIDEO), ("cachedContents", STORED),
)  # fmt: skip
"""Parts of a path; only at a host that serves models."""
_LISTS = frozenset(("models", "tunedModels"))
_KEPT = frozenset(("responses", "completions", "conversations"))
_BY_MODEL = (("embed", EMBEDDINGS), ("rerank", RERANK), ("stable-", IMAGES), ("stability.", IMAGES),
             ("-image", IMAGES), ("canvas", IMAGES), ("imagen", IMAGES), ("reel", VIDEO))  # fmt: skip
"""What models do that are asked by paths all models have: ``/model/ID/invoke``, ``/models/ID:predict``."""


def sort_of(method: str, path: str, served: bool) -> str | None:
    """Return a call's sort by its path, None if it is a model's or nobody's; ``served`` at a known host."""
    for ending, sort in ANYWHERE:
        if path.endswith(ending):
            return None if "/organization" in path else sort
    if "/v1/messages/batches" in path:
        return BATCH
    if not served or "/organization" in path:
        return None
    for ending, sort in _ENDINGS:
        if path.endswith(ending):
            return sort
    parts = [part.partition(":")[0] for part in path.split("/")]
    for word, sort in _WORDS:
        if word in parts:
            return sort
    if path.endswith((":predict", "/invoke")):
        name = path.rpartition("/")[2] if path.endswith(":predict") else path.rsplit("/", 2)[1]
        return next((sort for word, sort in _BY_MODEL if word in name.lower()), None)
    if method != "POST" and _LISTS.intersection(parts[-2:]):
        return MODELS
    kept = [at for at, part in enumerate(parts[:-1]) if part in _KEPT]
    return STORED if kept and (method != "POST" or parts[-1] == "cancel") else None


def used(body: object) -> dict[str, int] | None:
    """Return the tokens such an answer says it used, in the neutral spelling."""
    from .shapes import usage

    told = mapping(body)
    found = usage(told)
    if found is not None:
        return found
    billed = mapping(mapping(told.get("meta")).get("billed_units"))
    return _first(billed, "input_tokens") or _first(told, "prompt_eval_count", "inputTextTokenCount")


def _first(told: Mapping[str, object], *names: str) -> dict[str, int] | None:
    found = [number for name in names if (number := count(told.get(name))) is not None]
    return {"input": found[0]} if found else None
