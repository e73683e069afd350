"""boto3's bedrock-runtime."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ..table import CORE, ONLY_OK, Site, case, needs, unsupported

SDK = "boto3"
needs(SDK, "boto3")
ASK: Any = {
    "modelId": "scripted.claude-v1:0",
    "messages": [{"role": "user", "content": [{"text": "Which city has seven hills?"}]}],
}
INVOKE: Any = {
    "modelId": "scripted.claude-v1:0",
    "body": json.dumps({"max_tokens": 64, "messages": [{"role": "user", "content": "Seven hills?"}]}),
}


@functools.cache
def session() -> Any:
    """Reading the service's description takes 200 ms: once is enough."""
    import boto3

    return boto3.Session(
        aws_access_key_id="AKIANONE", aws_secret_access_key="none", region_name="us-east-1"
    )  # fmt: skip


def client_for(site: Site) -> Any:
    from botocore.config import Config

    config = Config(
        read_timeout=site.timeout,
        retries={"mode": "standard", "total_max_attempts": site.retries + 1},
    )
    return closing(site.client(session().client("bedrock-runtime", endpoint_url=site.url, config=config)))


@case(
    SDK,
    "converse",
    [*CORE, "gzip", "closed", "refused", "retried"],
    unsupported={"gzip": "botocore asks for no compression and undoes none"},
    fails={"closed": False},  # botocore takes half a body for an empty answer
)
def converse(site: Site) -> Any:
    with client_for(site) as client:
        return client.converse(**ASK)


@case(SDK, "converse_stream", [*CORE, "closed", "malformed", "error inside", "shredded"])
def converse_stream(site: Site) -> Iterator[Any]:
    with client_for(site) as client, closing(client.converse_stream(**ASK)["stream"]) as stream:
        yield from stream


@case(SDK, "invoke_model")
def invoke(site: Site) -> Any:
    with client_for(site) as client:
        answer = client.invoke_model(**INVOKE)
        return [answer["ResponseMetadata"], json.loads(answer["body"].read())]


@case(SDK, "invoke_model_with_response_stream")
def invoke_stream(site: Site) -> Iterator[Any]:
    with client_for(site) as client:
        with closing(client.invoke_model_with_response_stream(**INVOKE)["body"]) as stream:
            yield from stream


@case(SDK, "tool loop", ONLY_OK, answer="tools-2,thinking")
def tool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed: list[Any] = []
    with client_for(site) as client:
        while not printed or printed[-1]["stopReason"] == "tool_use":
            printed.append(client.converse(modelId=ASK["modelId"], messages=messages))
            message = printed[-1]["output"]["message"]
            uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
            results = [
                {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": "high"}]}} for use in uses
            ]
            messages += [message, {"role": "user", "content": results}]
    return printed


for method, shape in (
    *(("converse", "plain"), ("converse_stream", "stream"), ("invoke_model", "plain")),
    *(("invoke_model_with_response_stream", "stream"), ("tool loop", "plain")),
):
    unsupported(SDK, method, "async", shape, "boto3 is synchronous only")
