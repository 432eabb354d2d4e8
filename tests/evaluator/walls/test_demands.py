"""Strict isolation: granted where every wall stands, refused in one line where one is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.evaluation import Status
from evaluator.walls.demands import (
    IDENTITIES,
    STRICT,
    STRICT_COMPILER,
    missing,
    rejection,
    remedy,
)
from evaluator.walls.environment import python_path
from tests.evaluator.made_requests import HONEST

HERE = Path(__file__).parent


def test_every_missing_layer_has_a_remedy_of_one_line():
    for layer in (*STRICT, *STRICT_COMPILER, *IDENTITIES):
        assert remedy(layer) and "\n" not in remedy(layer)


def test_what_is_missing_is_named_in_order():
    assert missing(["own_uid", *STRICT]) == ()
    assert missing(["user_namespace", *STRICT]) == ()
    assert missing(["own_uid", *(set(STRICT) - {"seccomp", "landlock"})]) == ("landlock", "seccomp")
    (who,) = missing(STRICT)
    assert who in IDENTITIES
    line = rejection(("landlock", "seccomp"))
    assert "landlock, seccomp missing" in line and "\n" not in line


@pytest.mark.skipif(os.geteuid() != 0, reason="asks for root's walls")
def test_where_all_walls_stand_strict_judges(evaluate):
    evaluation = evaluate(HONEST, isolation="strict")
    assert evaluation.status is Status.CORRECT
    assert not missing(evaluation.isolation)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a lesser machine of this one")
@pytest.mark.parametrize(
    "command",
    [
        ("evaluator.check", "{kernel}", "--problem", "level1/7"),
        ("agent.run", "--budget", "1", "--output", "{folder}/run"),
        ("agent.run", "--dry-run", "--output", "{folder}/run"),
    ],
)
def test_elsewhere_it_is_refused_in_one_line(tmp_path, command):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(HONEST)
    filled = [word.format(kernel=kernel, folder=tmp_path) for word in command]
    done = subprocess.run(
        [
            *(sys.executable, str(HERE / "lesser_machine.py"), "container"),
            *(sys.executable, "-m", *filled, "--device", "cpu", "--require-isolation", "strict"),
        ],
        env=os.environ | {"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "pid_namespace" in line and "SYS_ADMIN" in line
    assert not (tmp_path / "run").exists()
