"""A run that begins with the first turns of another one."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.config.run_config import RunConfig
from agent.fork import Fork
from agent.record.archive import unpacked
from agent.record.run_files import RunFiles
from agent.record.store import open_store
from agent.record.turn import TurnRecord
from problems.errors import UsageError
from tests.agent.world import World

ROOT = Path(__file__).parents[2]


def forked(folder: Path, at: int, **settings: object) -> tuple[World, World]:
    """A run of four turns, and one that leaves it at turn `at`."""
    before, after = World(folder / "before"), World(folder / "after")
    before.run(budget=4, feedback="none")
    fork = Fork.parse(f"{before.files.path}@{at}")
    config: RunConfig = after.config(budget=4, fork=f"{before.files.path}@{at}", **settings)
    fork.check(config)
    with open_store(config) as store:
        fork.take_over(config, store)
        fork.take_over(config, store)  # as after a kill: nothing is there twice
    return before, after


def turns(world: World) -> list[TurnRecord]:
    return sorted(world.files.turns(), key=lambda turn: (turn.problem, turn.turn))


def test_it_goes_on_from_the_turns_before_and_they_count(tmp_path: Path) -> None:
    before, after = forked(tmp_path, 2, feedback="G+E")
    result = after.run(budget=4, feedback="G+E", fork=f"{before.files.path}@2")
    assert all(problem.turns == 4 for problem in result.problems)
    ours, theirs = turns(after), turns(before)
    assert [turn for turn in ours if turn.turn < 2] == [t for t in theirs if t.turn < 2]
    assert len(ours) == len(theirs)
    first = next(turn for turn in ours if turn.turn == 2)
    assert "## What execution said" in after.files.prompt(first.prompt)
    assert "## What execution said" not in before.files.prompt(theirs[2].prompt)
    asked = after.diary.count("model").total()
    assert asked == before.diary.count("model").total() // 2


def test_what_it_needs_is_in_its_own_folder(tmp_path: Path) -> None:
    _, after = forked(tmp_path, 3)
    for turn in turns(after):
        after.files.prompt(turn.prompt)
        after.files.completion(turn.completion)
        assert turn.candidate is None or after.files.kernel(turn.candidate)


@pytest.mark.parametrize("text", ["runs/NAME", "runs/NAME@", "@3", "runs/NAME@0", "runs/NAME@x"])
def test_a_fork_is_a_run_and_a_turn(text: str) -> None:
    with pytest.raises(UsageError, match="give a run directory and the first turn"):
        Fork.parse(text)


def test_there_must_be_so_many_turns(tmp_path: Path) -> None:
    before = World(tmp_path)
    before.run(budget=2)
    with pytest.raises(UsageError, match=r"has 2 turns of .* before turn 3; fork it earlier"):
        Fork.parse(f"{before.files.path}@3").check(before.config(budget=4))


def test_samples_are_no_trajectory(tmp_path: Path) -> None:
    before = World(tmp_path)
    before.run(budget=2, strategy="sample")
    with pytest.raises(UsageError, match="one trajectory a problem, and not for sample"):
        Fork.parse(f"{before.files.path}@1").check(before.config(budget=4))


@pytest.mark.thorough
def test_the_command_takes_over_settings_as_well(tmp_path: Path) -> None:
    recorded = unpacked(ROOT / "experiments/recordings/refine-tuner-cpu.tar.xz")
    words = ["--fork", f"{recorded}@5", "--problem", "level1_4_softmax", "--feedback", "G+E"]
    words += ["--timing-seconds", "0.2", "--confirm", "0", "-o", str(tmp_path / "fork")]
    done = subprocess.run(
        [sys.executable, "-m", "agent.run", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files = RunFiles(tmp_path / "fork")
    config = files.config()
    assert (config.budget, str(config.feedback), config.backend) == (6, "G+E", "cpp")
    taken = [t for t in RunFiles(recorded).turns() if t.problem == "level1_4_softmax"]
    found = list(files.turns())
    assert [turn.turn for turn in found] == list(range(6))
    assert found[:5] == sorted(taken, key=lambda turn: turn.turn)[:5]
    assert "## What the profiler said" not in files.prompt(found[5].prompt)
