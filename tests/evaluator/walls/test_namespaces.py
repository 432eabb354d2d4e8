"""PID namespaces and those who hold them open."""

import subprocess
import sys

import pytest

from tests.command import ROOT
from tests.evaluator.processes import still_running

OWNER = """
import os, select, signal
from evaluator.walls import namespaces

owner, at_once = os.getpid(), namespaces.prctl

def late(option, value):
    if option == namespaces.PR_SET_PDEATHSIG:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        ended.poll()
    at_once(option, value)

handle = os.pidfd_open(owner)
namespaces.prctl = late
born = namespaces.fork_apart()
if born.pid == 0:
    os.close(1)
    signal.pause()
print(born.pid, born.init, flush=True)
os.kill(owner, signal.SIGKILL)
"""


def test_nobody_is_left_where_the_owner_ends_before_its_end_is_watched() -> None:
    forks = subprocess.run(
        [
            sys.executable,
            "-c",
            "from evaluator.walls.namespaces import can_fork_apart as f;raise SystemExit(not f())",
        ],
        cwd=ROOT,
        check=False,
    )
    if forks.returncode:
        pytest.skip("no PID namespaces here")
    owner = subprocess.run(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    assert not still_running(map(int, owner.stdout.split()), patience_s=10.0)
    assert len(owner.stdout.split()) == 2
