"""A small agent service: every request is a run, with nested calls, tools in threads and awaits in between."""

from __future__ import annotations

import asyncio
import os

import reenact

FOLDER = os.environ["SERVICE_TRACES"]
tap = reenact.Tap()
inside = most_inside = most_descriptors = 0


@tap.tool
async def lookup(marker: str) -> str:
    await asyncio.sleep(0)
    return f"found {marker}"


def in_a_thread(marker: str) -> None:
    reenact.Trace().step("thread", marker=marker)


async def agent(marker: str) -> None:
    global inside, most_inside, most_descriptors
    async with reenact.run(
        "service", path=f"{FOLDER}/{marker}.jsonl", input={"marker": marker}, redact=False
    ):
        inside += 1
        messages: list[dict[str, str]] = []
        for turn in range(3):
            messages.append({"role": "user", "content": f"{marker} {turn}"})
            call = tap.record_model_request({"model": "m", "messages": messages})
            await asyncio.sleep(0.001 * (hash(marker) % 5))
            most_inside = max(most_inside, inside)
            tap.record_model_response({"role": "assistant", "content": f"{marker} {turn}"}, call=call)
            await asyncio.gather(lookup(marker), lookup(marker))
        await asyncio.to_thread(in_a_thread, marker)
        inside -= 1
    most_descriptors = max(most_descriptors, len(os.listdir("/proc/self/fd")))


async def app(scope, receive, send):  # type: ignore[no-untyped-def]
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    path = scope["path"].strip("/")
    if path != "state":
        await agent(path)
    body = f"{os.getpid()} {most_inside} {most_descriptors} {type(asyncio.get_running_loop()).__module__}"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body.encode()})


def wsgi(environ, start_response):  # type: ignore[no-untyped-def]
    """The same for a prefork server whose workers are synchronous."""
    asyncio.run(agent(environ["PATH_INFO"].strip("/")))
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
