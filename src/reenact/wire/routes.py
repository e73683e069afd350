"""Which HTTP calls are model calls: told by path, by host, or by hosts the user named.

Pure. Whose shape a body has is decided by shapes.py; this only says whether to look, and as what.
"""

from __future__ import annotations

from .shapes import provider_of_request
from .sorts import ANYWHERE, sort_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import NamedTuple

    class Route(NamedTuple):
        """What a call is: ``model``, or the sort of another call to a model API; and whose."""

        sort: str
        provider: str | None
else:
    from collections import namedtuple

    Route = namedtuple("Route", "sort provider")

MODEL, HTTP = "model", "http"
"""Besides the sorts of sorts.py: an answer is asked for; traffic that is no business of a model's."""

_MODEL_PATHS = (
    ("/chat/completions", "openai"),
    ("/completions", "openai"),
    ("/responses", "openai-responses"),
    ("/realtime", "openai-responses"),
    ("/v1/messages", "anthropic"),
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
    (":rawPredict", None),
    (":streamRawPredict", None),
    ("/converse", "bedrock"),
    ("/converse-stream", "bedrock"),
    ("/invoke", None),
    ("/invoke-with-response-stream", None),
    ("/api/chat", "ollama"),
    ("/api/generate", "ollama"),
    ("/v2/chat", "cohere"),
    ("/v1/chat", "cohere"),
    ("/v1/generate", None),
    ("/v1/summarize", None),
)
_NAMED_IN_PATH = ("/models/", "/model/", "/deployments/", "/engines/")
_ASKING = tuple(ending for ending, _ in _MODEL_PATHS if ending != "/invoke")
_ENDINGS = tuple(ending for ending, _ in (*_MODEL_PATHS, *ANYWHERE))
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
    rest = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    if rest.startswith("["):
        return rest[1:].partition("]")[0].lower()
    return rest.partition(":")[0].lower()


def port_of(url: str) -> int | None:
    """Return the port of a URL, None if it cannot be told."""
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


def endpoint(path: str) -> str:
    """Return the path of a model call, with the model it names, without what a gateway puts before it."""
    for ending, _ in _MODEL_PATHS:
        if path.endswith(ending):
            before = path.removesuffix(ending)
            named = max(before.rfind(name) for name in _NAMED_IN_PATH)
            return (before[named:] if named >= 0 else "") + ending
    return path


def route_of(method: str, url: str, body: object = None, named: Collection[str] = ()) -> Route | None:
    """Return what a call is, None for traffic that is no business of a model's."""
    path, served = _place(url, named)
    asks = method == "POST" and path.endswith(_ASKING)  # whatever stands before it, a gateway's prefix too
    sort = None if asks else sort_of(method, path, served)
    if sort is not None:
        return Route(sort, None)
    if method != "POST":
        return None
    for ending, provider in _MODEL_PATHS:
        if path.endswith(ending) and (served or ending not in _NEEDS_HOST or _has_prompt(body)):
            return Route(MODEL, provider)
    if served and isinstance(body, dict):
        provider = provider_of_request(body)
        return Route(MODEL, provider) if provider or _has_prompt(body) else None
    return None


def _has_prompt(body: object) -> bool:
    return isinstance(body, dict) and any(
        key in body
        for key in ("messages", "prompt", "contents", "anthropic_version", "inputText", "input", "inputs")
    )
