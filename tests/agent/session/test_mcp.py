"""The official SDK's client drives a session: over stdio, over HTTP, and killed in between."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import agent.mcp
from agent.record.run_files import RunFiles
from agent.session.door import Tell
from agent.session.mcp_server import mcp_server
from agent.session.tools import TOOLS, Answer
from evaluator.command.command_line import serve
from tests.command import ROOT, command, refused
from tests.task import as_candidate, task

SIZES = {"x": "torch.randn(256, 512)"}
MODULE = task("return torch.relu(x) * 2.0 + 1.0", **SIZES)
JUDGED = "--device cpu --budget 6 --timing-seconds 0.1 --confirm 1"


def kernel(body: str, plan: str) -> str:
    return f"# plan: {plan}\n{as_candidate(task(body, **SIZES))}"


WRONG = kernel("return torch.relu(x) * 2.0", "wrong")
SLOW = kernel("for _ in range(9): y = torch.relu(x) * 2.0 + 1.0\nreturn y", "slow")
RIGHT = kernel("return torch.relu(x).mul(2.0).add(1.0)", "right")
BETTER = kernel("return torch.relu(x).mul_(2.0).add_(1.0)", "in place")
NO_CODE = "I would rather not.\n"
TELLS: list[Tell] = []


def hostile(run: Path) -> str:
    """Looks for the token of the session that judges it."""
    return kernel(f"raise ValueError(open({str(run / 'session' / 'token')!r}).read())", "hostile")


def echo(tool: str, given: Mapping[str, object], tell: Tell, agent: str) -> Answer:
    tell("halfway")
    TELLS.append(tell)
    return Answer(f"{tool} {given} {agent}", "failed" if tool == "finish" else "refused")


def test_tools_have_descriptions_and_schemas_and_report_progress() -> None:
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def drive() -> None:
        async with Client(mcp_server(echo)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert [*tools] == [*TOOLS] and all(tool.description for tool in tools.values())
            assert tools["evaluate"].input_schema["required"] == ["source"]
            answer = await client.call_tool("evaluate", {"source": "x"}, progress_callback=hear)
            assert said(answer).startswith("evaluate {'source': 'x'} mcp") and not answer.is_error
            assert (await client.call_tool("finish")).is_error

    asyncio.run(drive())
    assert heard[0] == "0 s: begun"
    TELLS[0]("what is told when the client has gone is dropped")


def test_without_the_sdk_the_remedy_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("agent.mcp.find_spec", lambda name: None)
    assert serve(agent.mcp.command, "kernel-refinery mcp", []) == 2
    assert "pip install 'kernel-refinery[mcp]'" in capsys.readouterr().err
    assert "kernel-refinery mcp opens it" in refused("agent.run", "--strategy", "agent")


def said(answer: Any) -> str:
    return str(answer.content[0].text)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "own_module.py").write_text(MODULE)
    return tmp_path


def words(place: Path, *more: str) -> list[str]:
    """The command that opens the session."""
    paths = ["--problem", str(place / "own_module.py"), "-o", str(place / "run")]
    asked = [*paths, *JUDGED.split(), "--budget-profiles", "1", *more]
    return ["-W", "error", "-m", "kernel_refinery", "mcp", *asked]


def opened(place: Path) -> Client:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(command=sys.executable, args=words(place), env=env)
    return Client(stdio_client(server))


@pytest.mark.thorough
def test_over_http_the_token_is_asked_for(place: Path) -> None:
    argv = ["sh", "-c", 'ulimit -Sn 999; exec "$0" "$@"', sys.executable, *words(place, "--http=0")]
    server = subprocess.Popen(argv, cwd=ROOT, stdout=-1, text=True)
    assert server.stdout is not None
    address, token = (server.stdout.readline().split(": ")[1].strip() for _ in range(2))
    open_files, most = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    assert open_files >= min(most, 2**16)

    async def drive() -> None:
        async with httpx2.AsyncClient() as stranger:
            assert (await stranger.post(address, json={})).status_code == 401
        known = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
        async with known, Client(streamable_http_client(address, http_client=known)) as client:
            assert "own_module: 0 turns" in said(await client.call_tool("list"))

    asyncio.run(drive())
    listed = command("agent.tool", "list", "--session", place / "run")
    assert listed.stdout.startswith("own_module: 0 turns; left: 6 evaluations")
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=60)


@pytest.mark.slow
def test_an_agent_works_through_a_session_that_is_killed_twice(place: Path) -> None:
    run = place / "run"

    async def ask(client: Client, tool: str, **given: object) -> str:
        answer = await client.call_tool(tool, given)
        assert not answer.is_error, answer
        return said(answer)

    async def killed(client: Client, at: str, tool: str, **given: object) -> None:
        async def kill(progress: float, total: float | None, message: str | None) -> None:
            if message and at in message:
                os.kill(int((run / ".lock").read_text()), signal.SIGKILL)

        with pytest.raises(MCPError):
            await client.call_tool(tool, given, progress_callback=kill)

    async def begin() -> None:
        async with opened(place) as client:
            assert "class Model(" in await ask(client, "read")
            assert "- status: incorrect" in await ask(client, "evaluate", source=WRONG)
            assert "- status: correct" in await ask(client, "evaluate", source=SLOW)
            await killed(client, "built and judged", "evaluate", source=hostile(run))

    async def go_on() -> None:
        async with opened(place) as client:
            answer = await ask(client, "evaluate", source=hostile(run))
            assert "costs nothing. Turn 2 of own_module" in answer and "runtime_error" in answer
            assert (run / "session" / "token").read_text() not in answer
            assert "- status: no_code" in await ask(client, "evaluate", source=NO_CODE)
            await killed(client, "is profiled", "profile", turn=1)

    async def end() -> None:
        async with opened(place) as client, opened(place) as other:
            answers = await asyncio.gather(
                ask(client, "evaluate", source=RIGHT), ask(other, "evaluate", source=BETTER)
            )
            assert all("- status: correct" in answer for answer in answers)
            assert "left: 0 evaluations, 1 profile" in await ask(other, "status")
            assert "- bottleneck:" in await ask(client, "profile", turn=1)
            assert "all profiles are used" in await ask(other, "profile", turn=4)
            more = await ask(client, "evaluate", source=f"# 2\n{RIGHT}")
            assert "all evaluations are used" in more
            assert f"file: {run}/best/own_module.py" in await ask(client, "finish")
            assert "it is finished" in await ask(other, "evaluate", source="# 3")

    for part in (begin, go_on, end):
        asyncio.run(part())
    turns = list(RunFiles(run).turns())
    statuses = ["incorrect", "correct", "runtime_error", "no_code", "correct", "correct"]
    assert [turn.evaluation.status for turn in turns] == statuses
    assert [turn.profile is not None for turn in turns] == [False, True, *[False] * 4]
    asked, refined = ("--problem", place / "own_module.py", *JUDGED.split()), place / "refined"
    assert command("agent.run", *asked, "-o", refined).returncode == 0
    report = command("experiments.report", run, refined).stdout
    assert "run: agent G+E+P, agent/unnamed (a coding agent" in report
    assert "refined: refine G+E+P, offline/tuner" in report
    compared = command("experiments.compare", run, refined).stdout
    assert "held equal: at most 6 evaluations a problem" in compared
    assert "turn 1: correct" in command("agent.show", run).stdout
