"""mini-swe-agent does a session through the commands. It lives in an environment of its own:
`make test-mini`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.command import ROOT, command
from tests.exploits.problems import matmul
from tests.exploits.sources import module

MINI = shutil.which("mini")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MINI is None, reason="make test-mini has mini-swe-agent"),
]
KERNELS = {
    "wrong": module("return torch.matmul(a, b) + 1"),
    "slow": module("for _ in range(30): c = torch.matmul(a, b)\nreturn c"),
    "none": "print('no kernel')\n",
    "right": module("return torch.matmul(a, b)"),
}
LAST = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@contextmanager
def session(run: Path, problem: Path) -> Iterator[None]:
    """Open until the end of the block, for the commands."""
    words = ("--commands", "--problem", problem, "--budget", 4, "--budget-profiles", 1, "-o", run)
    judged = ("--device", "cpu", "--timing-seconds", "0.05", "--no-audit", "--feedback", "G+E+P")
    command = [sys.executable, "-m", "agent.mcp", *map(str, words), *judged]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert any("session: " in line for line in process.stderr)
            rest = threading.Thread(target=process.stderr.read)
            rest.start()
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
        rest.join()


@contextmanager
def scripted(commands: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The address of a model that gives these commands, and what it was told of each."""
    told: list[str] = []

    class Model(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.append(str(asked["messages"][-1]["content"]))
            arguments = json.dumps({"command": commands[len(told) - 1]})
            called = {"name": "bash", "arguments": arguments}
            call = {"id": f"call{len(told)}", "type": "function", "function": called}
            message = {"role": "assistant", "content": "next", "tool_calls": [call]}
            choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}
            body = json.dumps(answer | {"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", told
        server.shutdown()


def test_a_session_by_its_commands(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(matmul(64))
    for name, source in KERNELS.items():
        (tmp_path / f"{name}.py").write_text(source)
    tool = f"{sys.executable} -m agent.tool"
    commands = [
        f"{tool} read",
        *(f"{tool} evaluate {name}.py" for name in KERNELS),
        *(f"{tool} {words}" for words in ("profile", "evaluate own.py", "status", "finish")),
        f"echo {LAST}",
    ]
    run = tmp_path / "run"
    with session(run, tmp_path / "own.py"), scripted(commands) as (address, told):
        settings = (
            "mini.yaml",
            "environment.timeout=600",
            f"model.model_kwargs.api_base={address}",
            "model.model_kwargs.api_key=none",
            "model.cost_tracking=ignore_errors",
        )
        done = subprocess.run(
            [
                *(str(MINI), "-m", "openai/scripted", "-t", "Write a fast kernel.", "-y"),
                *("--exit-immediately", "-o", tmp_path / "trajectory.json"),
                *(word for each in settings for word in ("-c", each)),
            ],
            cwd=tmp_path,
            env=os.environ
            | {
                "KERNEL_REFINERY_SESSION": str(run),
                "PYTHONPATH": str(ROOT),
                "MSWEA_CONFIGURED": "true",
                "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path / "settings"),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    _, read, *judged, profiled, over, status, finished = told
    assert "class Model" in read
    for said, words in zip(judged, ("incorrect", "correct", "ModelNew", "correct"), strict=True):
        assert words in said, said
    assert "bottleneck" in profiled and "all evaluations are used" in over
    assert "4 turns" in status and "is the best" in finished
    lines = [json.loads(line) for line in (run / "turns.jsonl").read_text().splitlines()]
    assert [line["strategy"] for line in lines] == ["agent"] * 4
    assert "agent" in command("agent.show", run).stdout
