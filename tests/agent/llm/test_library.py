import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.record.completion import CompletionRequest, Message
from tests.agent.llm.provider_server import answer, refusal

ROOT = Path(__file__).parents[3]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


ASK = """
import sys
from agent.llm.check import check_model
from agent.llm.client import LiteLLMClient
from agent.record.completion import CompletionRequest
from agent.llm.failure import RetryPolicy
from agent.llm.failure import ModelError
from problems.errors import UsageError

for model in ("opnai/x", "zzz"):
    try:
        check_model(model, {})
    except UsageError as error:
        print(error, file=sys.stderr)
client = LiteLLMClient(policy=RetryPolicy(attempts=2), sleep=lambda seconds: False)
for request in REQUESTS:
    try:
        print(client.complete(CompletionRequest.model_validate(request)).text, file=sys.stderr)
    except ModelError as error:
        print(error, file=sys.stderr)
print([m for m in ("torch", "boto3", "fastapi") if m in sys.modules], file=sys.stderr)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("level", ["DEBUG", pytest.param("", marks=pytest.mark.slow)])
def test_nothing_on_stdout(server, level):
    server.will(answer("first"), refusal(500), answer("second"), refusal(401, "no"))
    wanted = CompletionRequest(
        model="openai/test-model",
        messages=(Message(role="user", content="Hi."),),
        arguments={"api_base": server.url, "timeout": 20},
    ).model_dump()
    environment = {"LITELLM_LOG": level} if level else {}
    done = python(ASK.replace("REQUESTS", repr([wanted] * 3)), **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "first\nsecond\n" in done.stderr
    assert "key was refused" in done.stderr
    assert done.stderr.endswith("[]\n")  # the agent's process stays light
    assert os.environ["OPENAI_API_KEY"] not in done.stderr


@pytest.mark.slow
def test_prices_are_not_fetched():
    """Every look-up of a name fails, and says so."""
    code = """
import socket
asked = []
def refuse(*args, **kwargs):
    asked.append(args)
    raise OSError("no network in this test")
socket.getaddrinfo = socket.socket.connect = refuse
from agent.llm.pricing import most_it_can_cost
print(most_it_can_cost("openai/gpt-4o", 1000, 1000, 1), asked)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.0125 []\n"


def test_the_rooms_and_the_graph_import_neither_litellm_nor_torch():
    names = "client check pricing providers relay recording failure library"
    code = f"import sys\nfor name in {names!r}.split(): __import__('agent.llm.' + name)\n"
    code += "import agent.loop.drive, agent.loop.graph\nagent.loop.graph.build_graph()\n"
    done = python(code + "assert not {'litellm', 'openai', 'torch'} & set(sys.modules)")
    assert done.returncode == 0, done.stderr


def test_the_malicious_releases_are_excluded():
    """Those of March 2026 came with a file that Python runs at every start."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = [d for d in project["dependencies"] if re.match(r"litellm\b", d)]
    assert "!=1.82.7" in wanted
    assert "!=1.82.8" in wanted
    assert "[" not in wanted  # no proxy extra
