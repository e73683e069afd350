"""Which calls are whose: every path that the installed SDKs know, gateways, clouds and odd prefixes."""

from __future__ import annotations

import gzip
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reenact.wire.routes import route_of, used

BASES = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google-genai": "https://generativelanguage.googleapis.com/v1beta",
    "mistralai": "https://api.mistral.ai",
    "cohere": "https://api.cohere.com",
    "ollama": "http://ollama.example:11434",
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
}
PATTERNS = {
    "anthropic": ("anthropic", "resources/**/*.py", r'"(/v1/[a-z_]+[^" ?]*)'),
    "openai": ("openai", "resources/**/*.py", r'"(/(?!v1/)[a-z_]+[^" ?]*)'),
    "google-genai": ("google.genai", "**/*.py", r"path = '(?!test|/)([^'?]*)"),
    "mistralai": ("mistralai", "**/*.py", r'path="(/[^"#]*)'),
    "cohere": ("cohere", "**/*.py", r'\n\s+f?"(v[12]/[^"]*)"'),
    "ollama": ("ollama", "**/*.py", r"'(/(?:api|v1)/[^']*)'"),
}
"""Package, its files, and how a path looks in them."""


def folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)))


def paths(sdk: str) -> set[str]:
    """Every path an SDK knows, what is filled in as {}."""
    if sdk == "bedrock":
        (file,) = folder("botocore").glob("data/bedrock-runtime/*/service-2.json.gz")
        known = json.loads(gzip.decompress(file.read_bytes()))["operations"].values()
        found = {each["http"]["requestUri"] for each in known}
    else:
        package, where, pattern = PATTERNS[sdk]
        texts = [file.read_text(errors="replace") for file in folder(package).glob(where)]
        found = {path for text in texts for path in re.findall(pattern, text)}
    return {"/" + re.sub(r"\{+[^}]*\}+", "{}", path).lstrip("/") for path in found}


# fmt: off
KNOWN: dict[str, dict[str, str]] = {
    "anthropic": {
        "- model": """/v1/messages""",
        "batch batch": """/v1/messages/batches /v1/messages/batches/{} /v1/messages/batches/{}/cancel /v1/messages/batches/{}/results""",
        "files files": """/v1/files /v1/files/{} /v1/files/{}/content""",
        "models -": """/v1/models /v1/models/{}""",
        "tokens tokens": """/v1/messages/count_tokens""",
    },
    "openai": {
        "- model": """/chat/completions /completions /organization/usage/completions /realtime /responses""",
        "audio audio": """/audio/speech /audio/transcriptions /audio/translations /audio/voice_consents /audio/voice_consents/{} /audio/voices /audio/voices/{}""",
        "batch batch": """/batches /batches/{} /batches/{}/cancel""",
        "embeddings embeddings": """/embeddings""",
        "files files": """/agents/environments/{}/files /containers/{}/files /containers/{}/files/{} /containers/{}/files/{}/content /files /files/{} /files/{}/content /uploads /uploads/{}/cancel /uploads/{}/complete /uploads/{}/parts /vector_stores/{}/file_batches/{}/files /vector_stores/{}/files /vector_stores/{}/files/{} /vector_stores/{}/files/{}/content""",
        "images images": """/images/edits /images/generations /images/variations""",
        "models -": """/models /models/{}""",
        "moderation moderation": """/moderations""",
        "stored -": """/chat/completions/{} /chat/completions/{}/messages /conversations/{} /conversations/{}/items /conversations/{}/items/{} /responses/{} /responses/{}/input_items""",
        "stored stored": """/responses/compact /responses/{}/cancel""",
        "tokens tokens": """/responses/input_tokens""",
        "video video": """/videos /videos/characters /videos/characters/{} /videos/edits /videos/extensions /videos/{} /videos/{}/content /videos/{}/remix""",
    },
    "google-genai": {
        "batch batch": """/batchPredictionJobs /batchPredictionJobs/{} /batchPredictionJobs/{}:cancel /batches /batches/{} /batches/{}:cancel /{}:asyncBatchEmbedContent /{}:batchGenerateContent""",
        "embeddings embeddings": """/{}:batchEmbedContents""",
        "files files": """/fileSearchStores /files /files/{} /files:register /upload/{}/files""",
        "models -": """/tunedModels /upload/{}/{}:uploadToFileSearchStore /v1beta/models /{}:cancel /{}:importFile""",
        "models model": """/{}:generateContent /{}:streamGenerateContent""",
        "stored stored": """/cachedContents""",
        "tokens tokens": """/{}:computeTokens /{}:countTokens""",
        "video video": """/{}:fetchPredictOperation /{}:predictLongRunning""",
    },
    "mistralai": {
        "- model": """/models/chat/completions /v1/agents/completions /v1/chat/completions /v1/fim/completions /v1/responses""",
        "audio audio": """/v1/audio/agents /v1/audio/agents/{} /v1/audio/agents/{}/sessions /v1/audio/agents/{}/versions /v1/audio/sessions /v1/audio/sessions/{} /v1/audio/speech /v1/audio/transcriptions /v1/audio/voices /v1/audio/voices/{} /v1/audio/voices/{}/sample /v2/audio/voices""",
        "batch batch": """/v1/batch/jobs /v1/batch/jobs/{} /v1/batch/jobs/{}/cancel""",
        "embeddings embeddings": """/v1/embeddings""",
        "files files": """/v1/files /v1/files/{} /v1/files/{}/content /v1/files/{}/url""",
        "models -": """/v1/fine_tuning/models/{} /v1/models /v1/models/{}""",
        "moderation moderation": """/v1/chat/classifications /v1/chat/moderations /v1/classifications /v1/moderations""",
        "ocr ocr": """/providers/mistral/azure/ocr /v1/ocr""",
        "stored -": """/v1/conversations/{} /v1/conversations/{}/history /v1/conversations/{}/messages /v1/conversations/{}/restart""",
        "tokens tokens": """/v1/responses/input_tokens""",
    },
    "cohere": {
        "- model": """/v1/chat /v1/generate /v1/summarize /v2/chat""",
        "audio audio": """/v2/audio/transcriptions""",
        "batch batch": """/v1/embed-jobs /v1/embed-jobs/{} /v1/embed-jobs/{}/cancel /v2/batches /v2/batches/{} /v2/batches/{}:cancel""",
        "embeddings embeddings": """/v1/embed /v2/embed""",
        "models -": """/v1/models /v1/models/{}""",
        "moderation moderation": """/v1/classify""",
        "ocr ocr": """/v2/parse""",
        "rerank rerank": """/v1/rerank /v2/rerank""",
        "tokens tokens": """/v1/detokenize /v1/tokenize""",
    },
    "ollama": {
        "- model": """/api/chat /api/generate""",
        "embeddings embeddings": """/api/embed /api/embeddings""",
        "models models": """/api/ps /api/show /api/tags""",
    },
    "bedrock": {
        "- model": """/model/{}/converse /model/{}/converse-stream /model/{}/invoke /model/{}/invoke-with-response-stream""",
        "batch batch": """/async-invoke /async-invoke/{}""",
        "moderation moderation": """/guardrail-checks/invoke /guardrail/{}/version/{}/apply""",
        "tokens tokens": """/model/{}/count-tokens""",
    },
}
# fmt: on
"""What a GET and a POST to these paths is; every other path of the SDK is none of ours."""


def sort_of(method: str, url: str, body: Any = None, named: tuple[str, ...] = ()) -> str:
    route = route_of(method, url, body, named)
    return route.sort if route is not None else "-"


@pytest.mark.parametrize("sdk", KNOWN)
def test_every_path_of_an_sdk(sdk: str) -> None:
    expected = {path: sorts for sorts, known in KNOWN[sdk].items() for path in known.split()}
    there = paths(sdk)
    assert len(there) >= 10 and there >= expected.keys(), expected.keys() - there
    for path in sorted(there):
        url = BASES[sdk] + path.replace("/{}:", "/models/x:", 1)
        sorts = [sort_of(method, url, None, ("ollama.example",)) for method in ("GET", "POST")]
        assert " ".join(sorts) == expected.get(path, "- -"), path


ASK = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
GATEWAY = "https://llm.corp.example/team-7/images/proxy/v1"


@pytest.mark.parametrize(
    ("method", "url", "body", "sort"),
    [
        ("POST", "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", ASK, "model"),
        ("POST", "https://x.openai.azure.com/openai/v1/responses", None, "model"),
        ("POST", "https://x.openai.azure.com/openai/deployments/d/embeddings?api-version=1", None, "embeddings"),
        ("POST", "https://x.openai.azure.com/openai/deployments/d/audio/transcriptions", None, "audio"),
        ("POST", "https://x.openai.azure.com/openai/deployments/d/images/generations", {"prompt": "x"}, "images"),
        ("POST", "https://x.services.ai.azure.com/models/chat/completions", ASK, "model"),
        (
            "POST",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c:rawPredict",
            None,
            "model",
        ),
        (
            "POST",
            "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent",
            None,
            "model",
        ),
        (
            "POST",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/text-embedding-005:predict",
            None,
            "embeddings",
        ),
        (
            "POST",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/imagen-4:predict",
            None,
            "images",
        ),
        ("POST", "https://openrouter.ai/api/v1/chat/completions", ASK, "model"),
        ("GET", "https://openrouter.ai/api/v1/models", None, "models"),
        ("POST", "https://api.groq.com/openai/v1/chat/completions", ASK, "model"),
        ("POST", "https://api.groq.com/openai/v1/audio/transcriptions", None, "audio"),
        ("POST", "https://api.together.xyz/v1/completions", {"prompt": "x"}, "model"),
        ("POST", "https://api.together.xyz/v1/rerank", None, "rerank"),
        ("POST", "http://localhost:8000/v1/chat/completions", ASK, "model"),
        ("POST", "http://localhost:8000/v1/completions", {"prompt": "x"}, "model"),
        ("POST", "http://localhost:8000/v1/completions", {"survey": 3}, "-"),
        ("POST", "http://localhost:8000/invoke", {"job": 3}, "-"),
        ("POST", "http://localhost:4000/embeddings", None, "embeddings"),
        ("POST", "http://localhost:4000/v1/messages", None, "model"),
        ("POST", "http://localhost:4000/v1/rerank", None, "-"),
        ("GET", "http://localhost:4000/v1/models", None, "-"),
        ("POST", f"{GATEWAY}/chat/completions", ASK, "model"),
        ("POST", f"{GATEWAY}/messages/ask", ASK, "images"),  # a gateway that hides what it is asked for
        ("GET", "https://llm.corp.example/v1/models/x", None, "models"),
        ("POST", "https://llm.corp.example/ask", ASK, "model"),
        ("POST", "https://llm.corp.example/login", {"user": "x"}, "-"),
        ("POST", "https://eu.llm.corp.example/v1/batches", None, "batch"),
        ("POST", "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.titan-embed-text-v2/invoke", None, "embeddings"),
        ("POST", "https://bedrock-runtime.us-east-1.amazonaws.com/model/cohere.rerank-v3-5/invoke", None, "rerank"),
        ("POST", "https://bedrock-runtime.us-east-1.amazonaws.com/model/stability.sd3/invoke", None, "images"),
        ("POST", "https://bedrock-runtime-fips.us-east-1.amazonaws.com/model/m/converse", None, "model"),
        ("POST", "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com/model/m/invoke", None, "model"),
        ("POST", "https://api.mistral.ai/v1/conversations", {"inputs": "x"}, "model"),
        ("POST", "https://api.openai.com/v1/conversations", {"items": []}, "-"),
        ("GET", "https://api.openai.com/v1/organization/usage/embeddings", None, "-"),
        ("POST", "https://shop.example/api/chat-room", {"messages": []}, "-"),
        ("POST", "https://shop.example/v1/chat", {"text": "x"}, "-"),
        ("POST", "https://gate.example/model/amazon.titan-embed-text-v2/invoke", {"inputText": "x"}, "embeddings"),
    ],
)  # fmt: skip
def test_clouds_and_gateways(method: str, url: str, body: Any, sort: str) -> None:
    assert sort_of(method, url, body, ("llm.corp.example",)) == sort


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ({"object": "list", "data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}}, {"input": 8}),
        ({"embeddings": [], "meta": {"billed_units": {"input_tokens": 5}}}, {"input": 5}),
        ({"embeddings": [], "prompt_eval_count": 7}, {"input": 7}),
        ({"embedding": [], "inputTextTokenCount": 4}, {"input": 4}),
        ({"text": "x", "usage": {"input_tokens": 3, "output_tokens": 4}}, {"input": 3, "output": 4}),
        ({"input_tokens": 14}, None),  # counted, not spent
        ({"totalTokens": 14}, None),
        ({"results": [], "meta": {"billed_units": {"search_units": 1}}}, None),
        ([], None),
    ],
)
def test_what_other_calls_spent(body: Any, usage: Any) -> None:
    assert used(body) == usage
