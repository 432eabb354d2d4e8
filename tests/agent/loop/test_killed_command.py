"""SIGKILL of the real command with its real judge; the same command again goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.record.best import rank
from agent.record.pending_turn import Work, read_pending_turn
from agent.record.run_files import RunFiles
from agent.record.turn_log import read_turns
from evaluator.evaluation import Status
from tests.agent.quick_task import QUICK_ANSWERS, QUICK_TASK
from tests.agent.relay_answers import answering
from tests.evaluator.processes import descendants, still_running

ROOT = Path(__file__).parents[3]
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0

def get_inputs():
    return [torch.randn(512, 1024)]

def get_init_inputs():
    return []
"""


def start(problem: Path, folder: Path, **settings: object) -> subprocess.Popen[str]:
    options = {
        "--problem": problem,
        "--model": "offline/tuner",
        "--feedback": "G+E",
        "--budget": 2,
        "--confirm": 0,
        "--device": "cpu",
        "--timing-seconds": 0.1,
        "--output": folder,
        "--display": "plain",
        **{f"--{name.replace('_', '-')}": value for name, value in settings.items()},
    }
    words = [str(word) for pair in options.items() for word in pair]
    return subprocess.Popen(
        [sys.executable, "-m", "agent.run", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_when(
    moment: Callable[[int], bool], problem: Path, folder: Path, **settings: object
) -> None:
    """Run the command and kill it as soon as `moment` has come; its judge goes with it."""
    process = start(problem, folder, **settings)
    with process:
        end = time.monotonic() + 300
        while not moment(process.pid):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < end, "the moment never came"
            time.sleep(0.005)
        family = descendants(process.pid)
        process.kill()
    assert len(family) >= 2, "it had no judge, or that had no workers"
    assert not still_running(family)


@pytest.mark.thorough
def test_it_goes_on_and_nothing_is_done_twice(tmp_path: Path) -> None:
    problem, folder = tmp_path / "twice_relu.py", tmp_path / "run"
    problem.write_text(PROBLEM)

    def in_an_evaluation(pid: int) -> bool:
        pending = [read_pending_turn(path.read_bytes()) for path in folder.glob("pending/*.json")]
        begun = any(turn is not None and turn.in_flight is Work.JUDGE for turn in pending)
        return begun and len(descendants(pid)) >= 2

    def one_is_recorded(pid: int) -> bool:
        turns = folder / "turns.jsonl"
        return turns.exists() and turns.read_text().endswith("\n")

    kill_when(in_an_evaluation, problem, folder)
    assert list(read_turns(folder)) == []
    (first_answer,) = (folder / "completions").iterdir()
    bought = first_answer.stat().st_mtime_ns
    kill_when(one_is_recorded, problem, folder)
    first_line = (folder / "turns.jsonl").read_text().splitlines()[0]

    process = start(problem, folder)
    _, told = process.communicate(timeout=400)
    assert process.returncode == 0, told
    assert "goes on after 1 recorded turns" in told
    assert (folder / "turns.jsonl").read_text().startswith(first_line + "\n")
    assert first_answer.stat().st_mtime_ns == bought  # nobody was asked again
    turns, files = list(read_turns(folder)), RunFiles(folder)
    assert [(turn.sample, turn.turn, turn.call) for turn in turns] == [(0, 0, 0), (0, 1, 1)]
    assert turns[0].repeated == 1  # the evaluation that was killed
    assert sum(turn.repeated for turn in turns) <= 2
    assert len({turn.completion for turn in turns}) == 2
    for turn in turns:
        assert files.prompt(turn.prompt)
        assert files.completion(turn.completion).completion.text
        assert turn.candidate is not None
        assert "class ModelNew" in files.kernel(turn.candidate)
    assert any(turn.evaluation.status is Status.CORRECT for turn in turns)
    assert list((folder / "pending").iterdir()) == []


@pytest.mark.thorough
def test_a_hybrid_goes_on_with_the_draft_that_it_kept(tmp_path: Path) -> None:
    problem, folder, relay = tmp_path / "doubled.py", tmp_path / "run", tmp_path / "relay"
    problem.write_text(QUICK_TASK)
    relay.mkdir()
    hybrid: dict[str, object] = {"strategy": "hybrid", "drafts": 2, "refine_best": 1, "budget": 4}
    hybrid["model"] = f"relay/{relay}"

    def recorded(number: int) -> Callable[[int], bool]:
        file = folder / "turns.jsonl"
        return lambda _: file.exists() and file.read_text().count("\n") >= number

    before = ""
    with answering(relay, *QUICK_ANSWERS):
        for number in (1, 2, 3):  # a draft is missing; all are there; one is being refined
            kill_when(recorded(number), problem, folder, **hybrid)
            now = (folder / "turns.jsonl").read_text()
            assert now.startswith(before)
            before = now
        process = start(problem, folder, **hybrid)
        _, told = process.communicate(timeout=400)
    assert process.returncode == 0, told
    assert (folder / "turns.jsonl").read_text().startswith(before)
    turns, files = list(read_turns(folder)), RunFiles(folder)
    best = min(turns[:2], key=rank).sample
    places = [(turn.sample, turn.turn) for turn in turns]
    assert places == [(0, 0), (1, 0), (best, 1), (best, 2)]
    assert [turn.call for turn in turns] == [0, 1, 2, 3]
    assert {str(turn.strategy) for turn in turns} == {"hybrid"}
    assert turns[2].parent == turns[best].candidate
    prompts = [files.prompt(turn.prompt) for turn in turns]
    assert prompts[0] == prompts[1]
    assert f"draft {best}.2" in told
    assert list((folder / "pending").iterdir()) == []
