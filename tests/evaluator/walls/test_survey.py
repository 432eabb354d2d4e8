"""What is reported of the walls, on this machine and on lesser ones, and when a wall is a sham."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.walls.environment import python_path
from evaluator.walls.survey import survey
from tests.evaluator.walls.sabotaged_survey import SABOTAGE

HERE = Path(__file__).parent
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="makes a lesser machine of this one")
UNPRIVILEGED = {
    *("no_capabilities", "no_new_privs", "dies_with_parent", "rlimits", "memory_limit"),
    *("clean_environment", "landlock", "seccomp", "judge_out_of_reach"),
}
NAMESPACES = {
    *("mount_namespace", "homes_hidden", "network_namespace", "ipc_namespace"),
    *("uts_namespace", "pid_namespace", "read_only", "own_tmp", "own_proc"),
}


def run(*command: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def on(kind: str) -> set[str]:
    command = (sys.executable, "-m", "evaluator.walls.survey")
    return run(str(HERE / "lesser_machine.py"), kind, *command)


@ROOT_ONLY
def test_root_gets_every_wall():
    assert set(survey()) >= {*UNPRIVILEGED, *NAMESPACES, "own_uid"}


@ROOT_ONLY
def test_a_user_gets_them_by_a_user_namespace():
    assert on("user") >= {*UNPRIVILEGED, *NAMESPACES, "user_namespace"}


@ROOT_ONLY
def test_in_a_container_those_that_need_no_privilege_are_left():
    layers = on("container")
    assert layers >= {*UNPRIVILEGED, "own_uid"}
    assert not layers & NAMESPACES


@ROOT_ONLY
def test_without_root_or_user_namespaces_the_judge_is_out_of_reach_all_the_same():
    layers = on("locked")
    assert layers >= UNPRIVILEGED
    assert not layers & {*NAMESPACES, "own_uid", "uid_nobody", "user_namespace"}


@ROOT_ONLY
@pytest.mark.parametrize("wall", SABOTAGE)
def test_a_wall_that_only_says_it_stands_is_not_reported(wall, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    layers = run(str(HERE / "sabotaged_survey.py"), wall)
    assert wall not in layers
    assert "no_new_privs" in layers
