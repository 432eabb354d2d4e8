"""What a run directory says of the run it belongs to, and which commands it refuses."""

from pathlib import Path

import pytest

from agent.record.store import open_store
from problems.errors import UsageError
from tests.agent.stand_in import (
    problem,
)
from tests.agent.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_changed_problem_is_refused(world: World) -> None:
    world.run(problems=("first",), budget=1)
    world.problem = lambda name: problem(name).model_copy(update={"hash": "0" * 16})
    with pytest.raises(UsageError, match=r"first\.py has changed .* --redo"):
        world.run(problems=("first",), budget=2)


def test_another_device_is_refused(world: World) -> None:
    world.run(budget=1)
    with open_store(world.config(budget=1)) as store:
        assert store.environment()["device"]
        store.add_environment({"device": "NVIDIA Imaginary"})
    with pytest.raises(UsageError, match="begun on NVIDIA Imaginary"):
        world.run(budget=2)


def test_the_commits_that_made_turns_are_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit_after(made_by: str | None, budget: int) -> object:
        monkeypatch.setattr("agent.loop.environment.revision", lambda: made_by)
        world.run(problems=("first",), budget=budget)
        return world.files.environment()["commit"]

    assert commit_after(None, 1) is None  # outside a checkout
    assert commit_after("aaaa", 2) == "aaaa"
    assert commit_after("bbbb", 2) == "aaaa"  # only shown again
    assert commit_after("bbbb+changes", 3) == "aaaa and bbbb+changes"
    assert commit_after("aaaa", 4) == "aaaa and bbbb+changes"


def test_the_record_says_how_prompts_are_cut(world: World) -> None:
    world.run(budget=1)
    limits = world.files.environment()["prompt_limits"]
    assert isinstance(limits, dict) and limits["profile_lines"] == 25
