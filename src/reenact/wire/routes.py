"""Which HTTP calls are model calls, and what other calls to a model API are, by path and host.

Pure. Whose shape a body has is decided in reading.py; this only says whether to look, and as what.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from .json_values import mapping
from .neutral import Usage, count
from .providers import PROVIDERS
from .reading import provider_of_request, usage


class Route(NamedTuple):
    """What a call is: ``model``, or the kind of another call to a model API; and the provider."""

    sort: str
    provider: str | None


MODEL, HTTP, OTHER = "model", "http", "other"
"""A request for a completion; traffic that is not a model API's; any other call of a wrapped client."""
EMBEDDINGS, TOKENS, BATCH, FILES = "embeddings", "tokens", "batch", "files"
MODELS, MODERATION, RERANK, OCR = "models", "moderation", "rerank", "ocr"
IMAGES, AUDIO, VIDEO, STORED = "images", "audio", "video", "stored"

_ANYWHERE = (
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
_SERVED_ENDINGS = (
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
_NAMES_MODEL = (":predict", "/invoke")
"""What models do behind paths that all models have: ``/model/ID/invoke``, ``/models/ID:predict``."""

_MODEL_PATHS: tuple[tuple[str, str | None], ...] = (
    *((ending, provider.NAME) for provider in PROVIDERS for ending in provider.ENDPOINTS),
    (":rawPredict", None),
    (":streamRawPredict", None),
    ("/invoke", None),
    ("/invoke-with-response-stream", None),
    ("/v1/generate", None),
    ("/v1/summarize", None),
)
"""Ends of paths of completions; where several providers share one, the body decides."""
_NAMED_IN_PATH = ("/models/", "/model/", "/deployments/", "/engines/")
_ASKING = tuple(ending for ending, _ in _MODEL_PATHS if ending != "/invoke")
_ENDINGS = tuple(ending for ending, _ in (*_MODEL_PATHS, *_ANYWHERE))
_NEEDS_HOST = (
    "/completions", "/invoke", "/invoke-with-response-stream", "/v1/chat", "/v2/chat", "/v1/generate",
    "/v1/summarize",
)  # fmt: skip
"""Paths that other services have too: only where the host or the body is a model's."""

HOSTS = (
    "api.anthropic.com", "api.openai.com", "openai.azure.com", "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com", "bedrock-runtime", "bedrock-runtime-fips", "api.mistral.ai",
    "api.cohere.com", "api.cohere.ai",
    "openrouter.ai", "api.groq.com", "api.deepseek.com", "api.x.ai", "api.together.xyz", "api.fireworks.ai",
    "api.perplexity.ai", "api.cerebras.ai", "api.sambanova.ai", "inference.ai.azure.com",
    "services.ai.azure.com", "router.huggingface.co", "api-inference.huggingface.co",
    "dashscope.aliyuncs.com",
    "api.moonshot.ai", "api.z.ai", "api.minimax.chat",
)  # fmt: skip
"""Where models are served; a part of the host name, matched at a dot."""
_BELOW = tuple(f".{host}" for host in HOSTS)
_REGIONS = tuple(f"{host}." for host in HOSTS)
_VERTEX, _PRIVATE = "-aiplatform.googleapis.com", ".bedrock-runtime."
"""A region before the name; an endpoint of one's own network."""


def host_of(url: str) -> str:
    """Return the host of a URL without user, port and brackets."""
    rest = url.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    if rest.startswith("["):
        return rest[1:].partition("]")[0].lower()
    return rest.partition(":")[0].lower()


def port_of(url: str) -> int | None:
    """Return the port of a URL, None if it is unknown."""
    scheme, _, rest = url.partition("://")
    place = rest.partition("/")[0].partition("?")[0].rpartition("@")[2].rpartition("]")[2]
    if ":" in place:
        port = place.rpartition(":")[2]
        return int(port) if port.isdecimal() else None
    return {"http": 80, "ws": 80, "https": 443, "wss": 443}.get(scheme.lower())


def is_model_host(host: str, named: Collection[str] = ()) -> bool:
    """True for a host known to serve models, or one the user named."""
    if host in HOSTS or host.endswith(_BELOW) or host.startswith(_REGIONS):
        return True
    if host.endswith(_VERTEX) or _PRIVATE in host:
        return True
    return any(host == each or host.endswith(f".{each}") or host.startswith(f"{each}.") for each in named)


def may_be_model(url: str, named: Collection[str] = ()) -> bool:
    """True if a call may be a model API's, so that it is worth reading its body."""
    path, served = _place(url, named)
    return served or path.endswith(_ENDINGS)


_places: dict[tuple[str, tuple[str, ...]], tuple[str, bool]] = {}


def _place(url: str, named: Collection[str]) -> tuple[str, bool]:
    """Return a URL's path and whether its host serves models; an agent asks the same few again and again."""
    known = _places.get(key := (url, tuple(named)))
    if known is None:
        if len(_places) >= 100:
            _places.clear()
        known = _places[key] = _path(url), is_model_host(host_of(url), named)
    return known


def _path(url: str) -> str:
    path = url.partition("://")[2].partition("/")[2].partition("?")[0].partition("#")[0]
    return "/" + path.rstrip("/")


STREAMED_PATHS = (
    (":streamGenerateContent", ":generateContent"),
    (":streamRawPredict", ":rawPredict"),
    ("/converse-stream", "/converse"),
    ("/invoke-with-response-stream", "/invoke"),
)
"""Ends of paths at which a stream is requested, and those of the same call without one."""


def plain_path(path: str) -> str:
    """Return the path of the same call without a stream."""
    for streamed, plain in STREAMED_PATHS:
        if path.endswith(streamed):
            return path.removesuffix(streamed) + plain
    return path


def endpoint(path: str) -> str:
    """Return the path of a model call, with the model it names, without what a gateway puts before it."""
    for ending, _ in _MODEL_PATHS:
        if path.endswith(ending):
            before = path.removesuffix(ending)
            named = max(before.rfind(name) for name in _NAMED_IN_PATH)
            return (before[named:] if named >= 0 else "") + ending
    return path


def route_of(method: str, url: str, body: object = None, named: Collection[str] = ()) -> Route | None:
    """Return what a call is, None for traffic that does not concern a model."""
    path, served = _place(url, named)
    asks = method == "POST" and path.endswith(_ASKING)  # whatever stands before it, a gateway's prefix too
    sort = None if asks else sort_of(method, path, served)
    if sort is not None:
        return Route(sort, None)
    if method != "POST":
        return None
    for ending, provider in _MODEL_PATHS:
        if path.endswith(ending) and (served or ending not in _NEEDS_HOST or _has_prompt(body)):
            return Route(_sort_by_model(path) or MODEL, provider)
    if served and isinstance(body, dict):
        provider = provider_of_request(body)
        return Route(MODEL, provider) if provider or _has_prompt(body) else None
    return None


def route_of_client(method: str, url: str) -> Route:
    """Return what a call of a wrapped client is that no host or path shows to be a model API's."""
    return Route(sort_of(method, _path(url), served=True) or OTHER, None)


def _has_prompt(body: object) -> bool:
    return isinstance(body, dict) and any(
        key in body
        for key in ("messages", "prompt", "contents", "anthropic_version", "inputText", "input", "inputs")
    )


def sort_of(method: str, path: str, served: bool) -> str | None:
    """Return a call's sort by its path, None if it is a model's or nobody's; ``served`` at a known host."""
    for ending, sort in _ANYWHERE:
        if path.endswith(ending):
            return None if "/organization" in path else sort
    if "/v1/messages/batches" in path:
        return BATCH
    if not served or "/organization" in path:
        return None
    for ending, sort in _SERVED_ENDINGS:
        if path.endswith(ending):
            return sort
    parts = [part.partition(":")[0] for part in path.split("/")]
    for word, sort in _WORDS:
        if word in parts:
            return sort
    if path.endswith(_NAMES_MODEL):
        return _sort_by_model(path)
    if method != "POST" and _LISTS.intersection(parts[-2:]):
        return MODELS
    kept = [at for at, part in enumerate(parts[:-1]) if part in _KEPT]
    return STORED if kept and (method != "POST" or parts[-1] == "cancel") else None


def _sort_by_model(path: str) -> str | None:
    if not path.endswith(_NAMES_MODEL):
        return None
    name = path.rpartition("/")[2] if path.endswith(":predict") else path.rsplit("/", 2)[1]
    return next((sort for word, sort in _BY_MODEL if word in name.lower()), None)


def used(body: object) -> Usage | None:
    """Return the tokens such an answer says it used, in the neutral spelling."""
    answer = mapping(body)
    found = usage(answer)
    if found is not None:
        return found
    billed = mapping(mapping(answer.get("meta")).get("billed_units"))
    return _first(billed, "input_tokens") or _first(answer, "prompt_eval_count", "inputTextTokenCount")


def _first(answer: Mapping[str, object], *names: str) -> Usage | None:
    found = [number for name in names if (number := count(answer.get(name))) is not None]
    return {"input": found[0]} if found else None
