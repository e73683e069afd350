"""Tools made of plain HTTP, recorded with all their traffic and answered by the recording, their server gone."""

from __future__ import annotations

import contextlib
import http.client
from pathlib import Path
from typing import Any

import pytest

from .test_replayed_connections import recording
from .web import LIBRARIES, SHAPES, web

pytestmark = pytest.mark.filterwarnings("ignore")


def responses_of(library: str, url: str) -> dict[str, Any]:
    """Every shape with one library."""
    ask = LIBRARIES[library]
    return {
        name: [ask(url + shape.path, shape) for _ in range(shape.times)] for name, shape in SHAPES.items()
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_tool_of_plain_http_gets_what_it_got(library: str, tmp_path: Path) -> None:
    with web() as (url, paths):
        with recording(tmp_path / "run.jsonl", everything=True):
            first = responses_of(library, url)
        assert len(paths) == (21 if library == "urllib3" else 19), "urllib3 itself comes back after 429"
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl", everything=True) as responder:
        again = responses_of(library, url)
    for name in SHAPES:
        assert again[name] == first[name], name
    assert responder is not None and responder.player.report() == []


def put_by_boto3(url: str) -> Any:
    import boto3

    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=url, **keys)
    return client.put_object(Bucket="hills", Key="seven", Body=b"text")["ETag"]


def put_by_hand(url: str) -> Any:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    with contextlib.closing(connection):
        connection.request("PUT", "/text", b"text", {"Expect": "100-continue"})
        return connection.getresponse().read()


@pytest.mark.parametrize("put", [put_by_boto3, put_by_hand])
def test_who_waits_for_100_continue_does_not_wait_in_vain(put: Any, tmp_path: Path) -> None:
    with web() as (url, paths):
        with recording(tmp_path / "run.jsonl", everything=True):
            first = put(url)
        assert len(paths) == 1
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl", everything=True) as responder:
        assert put(url) == first
    assert responder is not None and responder.player.report() == []
