"""A limit of memory over a family of processes: real groups where the system has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.evaluation import Status
from evaluator.walls import memory_group
from evaluator.walls.memory_group import MemoryGroup, find, tried
from tests.evaluator.test_survival import HONEST, forward

PLACE = tried()
NEEDS_GROUPS = pytest.mark.skipif(PLACE is None, reason="no control group of memory can be made")
V1 = """\
24 29 0:22 / /proc rw - proc proc rw
30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
31 25 0:27 /jobs /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
"""


def test_groups_are_made_below_our_own():
    place = find(V1, "3:cpu:/\n4:memory:/jobs/7\n0::/\n")
    assert place is not None
    assert place.folder == Path("/sys/fs/cgroup/memory/7")
    assert place.limit == "memory.limit_in_bytes" and place.swap_counts


def test_a_group_of_ours_that_is_out_of_sight_leaves_the_root():
    place = find(V1, "4:memory:/elsewhere\n")
    assert place is not None and place.folder == Path("/sys/fs/cgroup/memory")


@pytest.mark.parametrize(("controllers", "found"), [("cpu memory pids\n", True), ("cpu\n", False)])
def test_version_2_must_account_for_memory_there(tmp_path, controllers, found):
    (tmp_path / "cgroup.subtree_control").write_text(controllers)
    place = find(f"31 25 0:27 / {tmp_path} rw - cgroup2 cgroup2 rw\n", "0::/\n")
    assert (place is not None) == found
    if place is not None:
        assert (place.folder, place.limit, place.swap_counts) == (tmp_path, "memory.max", False)


def test_without_control_groups_there_is_none():
    assert find("24 29 0:22 / /proc rw - proc proc rw\n", "0::/\n") is None


def test_a_wall_that_does_not_hold_is_not_named(monkeypatch):
    monkeypatch.setattr(memory_group, "_GREEDY", "import sys; sys.stdin.read(1)")
    assert tried() is None


@NEEDS_GROUPS
def test_a_closed_group_takes_everybody_along():
    group = MemoryGroup(PLACE, 2**30)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    group.add(sleeper.pid)
    assert group.folder.is_dir() and not group.ran_out
    group.close()
    assert sleeper.wait(10) == -9
    assert not group.folder.exists()


@NEEDS_GROUPS
def test_groups_of_dead_judges_are_swept_up():
    left = PLACE.folder / "refinery-4194999-0"
    alive = PLACE.folder / f"refinery-{os.getpid()}-x"
    left.mkdir()
    alive.mkdir()
    try:
        assert tried() == PLACE
        assert not left.exists() and alive.exists()
    finally:
        alive.rmdir()


@pytest.mark.thorough
@NEEDS_GROUPS
def test_a_family_that_takes_too_much_together_is_stopped(evaluate):
    greedy = (
        "for _ in range(7):\n    if os.fork() == 0:\n"
        "        kept = b'x' * 400_000_000\n        time.sleep(60)\n"
        "raise ValueError(f'lost one: {os.wait()[1]}')"
    )
    limits = {"memory_limit_bytes": 2**31, "call_timeout_s": 30.0}
    evaluation = evaluate(forward(greedy, "import os, time"), **limits)
    assert "memory_group" in evaluation.isolation
    assert evaluation.status is Status.RUNTIME_ERROR
    # The system chooses whom it ends.
    assert "lost one: 9" in evaluation.message or evaluation.reason == "out_of_memory"
    assert evaluate(HONEST, timing_seconds=0.05, **limits).status is Status.CORRECT
