"""SIGKILL of the real command with its real judge; the same command again goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.record.progress import rank
from agent.record.run_files import RunFiles
from agent.record.turn import Work, read_pending_turn
from agent.record.turn_log import read_turns
from evaluator.evaluation import Status
from tests.agent.quick_task import QUICK_ANSWERS, QUICK_TASK
from tests.agent.relay_answers import answering
from tests.evaluator.processes import descendants, still_running

ROOT = Path(__file__).parents[3]


def start(problem: Path, folder: Path, **settings: object) -> subprocess.Popen[str]:
    options = {
        "--problem": problem,
        "--feedback": "G+E",
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


@pytest.mark.slow
def test_it_goes_on_and_nothing_is_done_twice(tmp_path: Path) -> None:
    """A hybrid, which also has to keep the draft that it refines."""
    problem, folder, relay = tmp_path / "doubled.py", tmp_path / "run", tmp_path / "relay"
    problem.write_text(QUICK_TASK)
    relay.mkdir()
    hybrid: dict[str, object] = {"strategy": "hybrid", "drafts": 2, "refine_best": 1, "budget": 4}
    hybrid["model"] = f"relay/{relay}"

    def recorded() -> str:
        file = folder / "turns.jsonl"
        return file.read_text() if file.exists() else ""

    def in_an_evaluation(pid: int) -> bool:
        pending = [read_pending_turn(path.read_bytes()) for path in folder.glob("pending/*.json")]
        begun = any(turn is not None and turn.in_flight is Work.JUDGE for turn in pending)
        return begun and len(descendants(pid)) >= 2

    def one_is_being_refined(_: int) -> bool:
        return recorded().count("\n") >= 3

    with answering(relay, *QUICK_ANSWERS) as answered:
        kill_when(in_an_evaluation, problem, folder, **hybrid)
        assert list(read_turns(folder)) == []
        bought = {path: path.stat().st_mtime_ns for path in (folder / "completions").iterdir()}
        assert bought
        kill_when(one_is_being_refined, problem, folder, **hybrid)
        before = recorded()
        process = start(problem, folder, **hybrid)
        _, told = process.communicate(timeout=400)
    assert process.returncode == 0, told
    assert f"goes on after {before.count(chr(10))} recorded turns" in told
    assert recorded().startswith(before)
    # Nobody was asked again.
    assert {path: path.stat().st_mtime_ns for path in bought} == bought
    assert len(answered) == 4
    turns, files = list(read_turns(folder)), RunFiles(folder)
    best = min(turns[:2], key=rank).sample
    places = [(turn.sample, turn.turn) for turn in turns]
    assert places == [(0, 0), (1, 0), (best, 1), (best, 2)]
    assert [turn.call for turn in turns] == [0, 1, 2, 3]
    assert {str(turn.strategy) for turn in turns} == {"hybrid"}
    assert turns[2].parent == turns[best].candidate
    assert sum(turn.repeated for turn in turns[:2]) >= 1  # the evaluation that was killed
    assert sum(turn.repeated for turn in turns) <= 3
    assert len({turn.completion for turn in turns}) == 4
    for turn in turns:
        assert files.completion(turn.completion).completion.text
        assert turn.candidate is not None
        assert "class ModelNew" in files.kernel(turn.candidate)
    prompts = [files.prompt(turn.prompt) for turn in turns]
    assert prompts[0] == prompts[1]
    assert f"draft {best}.2" in told
    assert any(turn.evaluation.status is Status.CORRECT for turn in turns)
    assert list((folder / "pending").iterdir()) == []
