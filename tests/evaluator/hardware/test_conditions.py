"""Whose a process on a device is, and what is told of a machine's state."""

from __future__ import annotations

import os
import subprocess

from evaluator.hardware.conditions import _is_ours, conditions
from evaluator.hardware.cores import usable_cores


def test_children_are_ours_and_nobody_else():
    script = "sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert _is_ours(os.getpid()) and _is_ours(child.pid) and _is_ours(grandchild)
        assert not _is_ours(os.getppid()) and not _is_ours(1)
        os.kill(grandchild, 9)
    # Gone, and reaped by the process that had it last.
    assert not _is_ours(child.pid)


def test_a_processor_has_no_state_of_a_gpu():
    state = conditions("cpu")
    assert state["cores"] == usable_cores()
    assert state["load_average_1m"] >= 0
    assert state["cpu_steal_s"] >= 0
    assert "sm_clock_mhz" not in state
