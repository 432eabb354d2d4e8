"""Each wall that a worker claims to stand behind is run against from inside."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.sandbox import clean_environment
from tests.evaluator.judge.test_judge import forward

PROBES = {
    "uid_nobody": "os.getuid() != 65534",
    "network_namespace": "len([n for _, n in socket.if_nameindex() if n != 'lo']) > 0",
    "no_new_privs": "'NoNewPrivs:\\t1' not in open('/proc/self/status').read()",
    "rlimits": "resource.getrlimit(resource.RLIMIT_CORE)[0] != 0",
    "memory_limit": "resource.getrlimit(resource.RLIMIT_AS)[0] > 2**35",
    "clean_environment": "any('KEY' in name for name in os.environ)",
    "homes_hidden": "any(os.listdir(home) not in ([], ['.pyenv']) for home in HOMES)",
}
HEAD = """
import os, resource, socket
HOMES = [home for home in ("/root", "/home") if os.path.isdir(home)]
"""


FAULTS = """
import resource, torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
x = torch.ones(2048, 2000)
def call():
    squares = x.pow(2)
    return x * torch.rsqrt(squares.mean(-1, keepdim=True)) * x[0]
for _ in range(20): call()
before = faults()
for _ in range(20): call()
print(faults() - before)
"""


@pytest.mark.parametrize("_", range(4))
def test_large_temporaries_come_from_warm_memory(tmp_path, _):
    """Where they don't (by luck of the heap), a call faults 12,000 times and takes 7x as long."""
    ran = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) < 1000


@pytest.mark.parametrize("layer", PROBES)
def test_a_layer_that_is_reported_holds(evaluate, layer, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    evaluation = evaluate(forward(f"raise ValueError('hole' if {PROBES[layer]} else 'held')", HEAD))
    if layer in evaluation.isolation:
        assert "held" in evaluation.message, f"{layer}: {evaluation.message}"
    else:
        assert os.geteuid() != 0 or layer == "homes_hidden", f"{layer} is missing as root"


def test_nothing_but_the_scratch_folder_can_be_written(evaluate, tmp_path):
    tmp_path.chmod(0o755)
    body = (
        "open('here', 'w').close()\n"
        f"try:\n    open({str(tmp_path / 'there')!r}, 'w')\nexcept OSError as error:\n"
        "    raise ValueError('refused') from None\nraise ValueError('written')"
    )
    evaluation = evaluate(forward(body))
    if "uid_nobody" in evaluation.isolation:
        assert "refused" in evaluation.message
    assert not (tmp_path / "there").exists() or "uid_nobody" not in evaluation.isolation


def test_no_process_is_left_behind(evaluate):
    body = "import subprocess\nsubprocess.Popen(['sleep', '9731'])\nraise ValueError('and away')"
    evaluate(forward(body))
    assert not any("9731" in line for line in _command_lines())


def _command_lines() -> list[str]:
    lines = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            # Others come and go while we look.
            with contextlib.suppress(OSError):
                lines.append((process / "cmdline").read_text())
    return lines
