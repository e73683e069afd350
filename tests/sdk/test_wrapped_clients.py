"""tap.wrap for every client it names: found, once, in copies too, and given back as it was."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.capture import guard
from reenact.capture.seams.httpx import is_tapped
from reenact.capture.seams.patching import Override

pytestmark = pytest.mark.filterwarnings("ignore")
URL = "http://127.0.0.1:9"
AWS = {"aws_region": "us-east-1", "aws_access_key": "a", "aws_secret_key": "b"}


def made(module: str, name: str, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)(**options)


def boto3() -> Any:
    return import_module("boto3").client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        endpoint_url=URL,
    )


def module_level_openai() -> Any:
    openai = import_module("openai")
    openai.api_key = "none"
    return openai


def vertex(name: str) -> Callable[[], Any]:
    return made("anthropic", name, region="us-east5", project_id="p", access_token="t")


KEY = {"api_key": "none", "base_url": URL}
CLIENTS: dict[str, Callable[[], Any]] = {
    "anthropic": made("anthropic", "Anthropic", **KEY),
    "anthropic async": made("anthropic", "AsyncAnthropic", **KEY),
    "AnthropicBedrock": made("anthropic", "AnthropicBedrock", **AWS),
    "AsyncAnthropicBedrock": made("anthropic", "AsyncAnthropicBedrock", **AWS),
    "AnthropicVertex": vertex("AnthropicVertex"),
    "AsyncAnthropicVertex": vertex("AsyncAnthropicVertex"),
    "openai": made("openai", "OpenAI", **KEY),
    "openai async": made("openai", "AsyncOpenAI", **KEY),
    "AzureOpenAI": made("openai", "AzureOpenAI", api_key="none", azure_endpoint=URL, api_version="1"),
    "AsyncAzureOpenAI": made(
        "openai", "AsyncAzureOpenAI", api_key="none", azure_endpoint=URL, api_version="1"
    ),
    "openai module": module_level_openai,
    "google-genai": made("google.genai", "Client", api_key="none"),
    "mistralai": made("mistralai.client", "Mistral", api_key="none"),
    "cohere v1": made("cohere", "Client", **KEY),
    "cohere v1 async": made("cohere", "AsyncClient", **KEY),
    "cohere v2": made("cohere", "ClientV2", **KEY),
    "cohere v2 async": made("cohere", "AsyncClientV2", **KEY),
    "ollama": made("ollama", "Client", host=URL),
    "ollama async": made("ollama", "AsyncClient", host=URL),
    "ollama module": lambda: import_module("ollama"),
    "boto3": boto3,
    "ChatOpenAI": made("langchain_openai", "ChatOpenAI", **KEY),
    "ChatAnthropic": made("langchain_anthropic", "ChatAnthropic", model="m", **KEY),
}


def carriers(client: Any) -> list[Any]:
    from reenact.capture.seams import aiohttp
    from reenact.capture.seams.wrap import _SEAMS, carriers

    kinds = tuple(kind for seam in _SEAMS for kind in seam.kinds())
    return carriers(client, kinds, aiohttp.holders())


def state(carrier: Any) -> dict[str, Any]:
    """What of a carrier a tap changes."""
    own = vars(carrier)
    mounts = {f"mount {key}": value for key, value in (own.get("_mounts") or {}).items()}
    overridden = {name: value for name, value in own.items() if isinstance(value, Override)}
    return {"transport": own.get("_transport"), **mounts, **overridden}


def is_listened_to(carrier: Any) -> bool:
    return any(is_tapped(each) or isinstance(each, Override) for each in state(carrier).values())


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_found_once_and_returned(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard.forget()
    client = CLIENTS[name]()
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        before = {id(each): (each, state(each)) for each in carriers(client)}
        assert before, "nothing to listen to"
        assert tap.wrap(client) is client
        once = {id(each): state(each) for each in carriers(client)}
        assert all(is_listened_to(each) for each, _ in before.values())
        tap.wrap(client)
        assert {id(each): state(each) for each in carriers(client)} == once, "wrapped twice is wrapped once"
        assert tap.unwrap(client) is client
        for carrier, was in before.values():
            assert state(carrier).keys() == was.keys()
            assert all(state(carrier)[key] is value for key, value in was.items())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "name",
    [
        "anthropic",
        "anthropic async",
        "AnthropicBedrock",
        "AnthropicVertex",
        "openai",
        "openai async",
        "AzureOpenAI",
    ],
)
def test_copies_stay_tapped(name: str, tmp_path: Path) -> None:
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        client = tap.wrap(CLIENTS[name]())
        for copy in (
            client.copy(),
            client.with_options(max_retries=7),
            client.with_options(timeout=3).copy(),
        ):
            assert copy is not client and all(is_listened_to(each) for each in carriers(copy))
        tap.unwrap(client)
        assert not any(is_listened_to(each) for each in carriers(client.copy()))


def test_what_has_nothing_to_listen_to_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    openai, httpx = import_module("openai"), import_module("httpx")
    guard.forget()
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        for nothing in (None, openai.OpenAI, "client", 3, object(), httpx.Client, lambda: None):
            assert tap.wrap(nothing) is nothing and tap.unwrap(nothing) is nothing
    printed = capsys.readouterr().err.splitlines()
    assert all("looked for clients of httpx and httpx2, sessions of aiohttp" in line for line in printed)
    for kind in ("NoneType", "builtins.type", "builtins.str", "builtins.int", "builtins.object", "function"):
        assert [line for line in printed if kind in line], kind


def test_a_closed_client_fails_as_it_would(tmp_path: Path) -> None:
    openai = import_module("openai")

    def fails(hand: Callable[[Any], Any]) -> tuple[str, str]:
        client = hand(openai.OpenAI(max_retries=0, **KEY))
        client.close()
        with pytest.raises(Exception) as raised:
            client.chat.completions.create(model="m", messages=[])
        return type(raised.value).__name__, str(raised.value)

    with Tap(str(tmp_path / "run.jsonl")) as tap:
        assert fails(tap.wrap) == fails(lambda client: client)


def test_google_genai_by_aiohttp_is_unwrapped(tmp_path: Path) -> None:
    client = CLIENTS["google-genai"]()

    async def session() -> Any:
        return await client._api_client._get_aiohttp_session()

    async def both(tap: Tap) -> None:
        held = await session()
        assert isinstance(vars(held).get("_request"), Override)
        tap.unwrap(client)
        assert "_request" not in vars(await session())
        await held.close()

    with Tap(str(tmp_path / "run.jsonl")) as tap:
        tap.wrap(client)
        asyncio.run(both(tap))


TYPED = """
from http.client import HTTPSConnection
from reenact import Tap

class Client:
    pass

tap = Tap()
reveal_type(tap.wrap(Client()))
reveal_type(tap.unwrap(HTTPSConnection("llm.example")))
"""


@pytest.mark.long
def test_a_wrapped_client_has_the_type_it_had(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    project = Path(__file__).parents[2]  # with what the type checker remembers of it: a second, not a minute
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "typed.py")]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    reported = [line.partition('"')[2].rstrip('"') for line in done.stdout.splitlines() if "Revealed" in line]
    assert reported == ["typed.Client", "http.client.HTTPSConnection"], done.stdout
