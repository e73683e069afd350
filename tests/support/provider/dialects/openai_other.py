"""OpenAI's calls beside the talk: embeddings, files, batches, models."""

from __future__ import annotations

import base64
import struct

from ..answers import Answer, Ask, compact, json_answer, whole_answer
from ..script import CREATED


def embeddings(ask: Ask) -> Answer:
    request = ask.json()
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    vector = [0.25, -0.5, 0.125]
    packed = base64.b64encode(struct.pack("<3f", *vector)).decode()
    value = packed if request.get("encoding_format") == "base64" else vector
    data = [{"object": "embedding", "index": index, "embedding": value} for index in range(len(texts))]
    usage = {"prompt_tokens": 4 * len(texts), "total_tokens": 4 * len(texts)}
    return json_answer({"object": "list", "model": request["model"], "data": data, "usage": usage})


def files(ask: Ask) -> Answer:
    if ask.path.endswith("/content"):
        return whole_answer(
            compact({"custom_id": "first", "response": {}}) + b"\n", "application/octet-stream"
        )
    name = ask.body.partition(b'filename="')[2].partition(b'"')[0].decode()
    file = {
        "id": "file-0001",
        "object": "file",
        "bytes": 42,
        "created_at": CREATED,
        "filename": name,
        "purpose": "batch",
        "status": "processed",
    }
    return json_answer(file)


def batches(ask: Ask) -> Answer:
    batch = {
        "id": "batch_0001",
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": "file-0001",
        "completion_window": "24h",
        "status": "completed",
        "output_file_id": "file-0002",
        "created_at": CREATED,
        "request_counts": {"total": 1, "completed": 1, "failed": 0},
    }
    return json_answer(batch)


def models(ask: Ask) -> Answer:
    model = {"id": "gpt-scripted", "object": "model", "created": CREATED, "owned_by": "nobody"}
    return json_answer({"object": "list", "data": [model]})
