"""The installed command as a user types it, and small traces made by the real recorder."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import reenact
from support.forked import COMMAND, do

LONG = "Hotel Lisboa, 82 EUR. " * 9000 + "And at the very end a needle."


class Typed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self):
        """The output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def environment(**more):
    """The test's environment without what would change the look, and what is asked for."""
    left_out = ("REENACT_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONIOENCODING")
    env = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**env, "PYTHONWARNINGS": "error", **more}


def run_bytes(*words, cwd=None, start=None, **env):
    words, env = list(map(str, words)), environment(**env)
    if start is None:
        return do(words, cwd, env)
    return subprocess.run(
        [COMMAND, *words], cwd=cwd, env=env, capture_output=True, timeout=120, preexec_fn=start
    )


def obey_permissions():
    """In a child before exec: take from root the right to read everything, so that modes count."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                raise OSError(ctypes.get_errno(), "prctl")


def typed(*words, cwd=None, start=None, **env):
    """Run the command; nothing it ever prints may be a traceback."""
    done = run_bytes(*words, cwd=cwd, start=start, **env)
    result = Typed(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode())
    assert "Traceback" not in result.err and "reenact has a bug" not in result.err, result.err
    return result


def on_a_terminal(arguments, typed_in, folder):
    """Type a command at a real terminal, answer its question, and return what the screen shows."""
    leader, follower = pty.openpty()
    env = environment(XDG_STATE_HOME=str(folder / "state"), TERM="dumb")
    process = subprocess.Popen(
        [COMMAND, *arguments], cwd=folder, env=env, stdin=follower, stdout=follower, stderr=follower,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    screen, answered, until = b"", False, time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                more = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            screen += more
        if not answered and b"[y/N]" in screen:
            os.write(leader, typed_in.encode())
            answered = True
        if process.poll() is not None and not select.select([leader], [], [], 0.2)[0]:
            break
    os.close(leader)
    return screen.decode(errors="replace"), process.wait(30)


def typed_many(commands):
    """Run several commands one after the other."""
    return [typed(*words) for words in commands]


def record_trip(path, *, fails=True, meta=None, name="trip"):
    """Two turns and a tool whose result is long; the second request is written as what was new in it."""
    tap = reenact.Tap(path, name=name, meta=meta or {"environment": "prod"}, redact=False)
    messages = [{"role": "user", "content": "Plan Lisbon"}]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 99, "system": "You plan trips.", "messages": messages}
    call = tap.record_model_request(body, provider="anthropic")
    use = {"type": "tool_use", "id": "toolu_01Ab", "name": "search", "input": {"q": "hotels"}}
    usage = {"input_tokens": 52, "output_tokens": 31}
    answer = {"id": "msg_01Xy", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
    answer |= {"content": [use], "stop_reason": "tool_use", "usage": usage}
    tap.record_model_response(answer, call=call)
    tool = tap.record_tool_call("search", {"q": "hotels"})
    tap.record_tool_result("search", LONG, None, call=tool)
    messages.append({"role": "assistant", "content": [use]})
    result = {"type": "tool_result", "tool_use_id": "toolu_01Ab", "content": LONG}
    messages.append({"role": "user", "content": [result]})
    call = tap.record_model_request(body, provider="anthropic")
    if fails:
        tap.record_model_response(None, call=call, error=TimeoutError("the model did not answer"))
    else:
        text = [{"type": "text", "text": "Hotel Lisboa it is."}]
        tap.record_model_response({**answer, "content": text, "stop_reason": "end_turn"}, call=call)
    tap.close()
    return Path(path)


def record_steps(path, count, *, name="long"):
    """A run of that many plain events."""
    with reenact.Trace(path, name=name) as trace:
        for number in range(count):
            trace.step("note", number=number)
    return Path(path)


def snapshot(folder):
    """Every file below a folder with its bytes and times of change."""
    files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
    return {
        str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in files if os.access(file, os.R_OK)
    }
