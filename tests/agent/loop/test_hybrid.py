"""Independent drafts, then the best of them refined: whole runs in a stand-in world."""

import threading
from pathlib import Path

import pytest

from agent.llm.failure import ModelUnavailableError
from agent.record.completion import CompletionRequest
from agent.record.progress import rank
from agent.record.result import Stop
from tests.agent.world import World

HYBRID = {"strategy": "hybrid", "drafts": 4, "refine_best": 2, "feedback": "G+E", "budget": 9}


def test_the_best_drafts_are_continued_until_the_budget_is_spent(world: World) -> None:
    result = world.run(**HYBRID)
    for found in result.problems:
        turns = world.turns(found.problem)
        assert [turn.call for turn in turns] == list(range(9))
        first, second = (turn.sample for turn in sorted(turns[:4], key=rank)[:2])
        assert [(turn.sample, turn.turn) for turn in turns] == [
            *((sample, 0) for sample in range(4)),
            *((first, 1), (second, 1), (first, 2), (second, 2), (first, 3)),
        ]
        assert list(world.files.turns()) == sorted(
            world.files.turns(), key=lambda turn: (turn.problem, turn.call)
        )
        assert (found.stop, found.spent.calls, found.turns) == (Stop.CALLS, 9, 9)
        assert found.best == min(turns, key=rank)
        assert found.last == turns[-1]


def test_its_drafts_are_those_of_sample(tmp_path: Path) -> None:
    asked = []
    for name, settings in (("a", HYBRID), ("b", {"strategy": "sample", "budget": 4})):
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        world.run(**settings, problems=("first",))
        asked.append(world.client.requests[:4])
    assert asked[0] == asked[1]


def test_a_refining_turn_sees_its_own_sample_and_no_other(world: World) -> None:
    world.run(**HYBRID, problems=("first",))
    turns = world.turns()
    kernels = {turn.sample: turn.candidate for turn in turns[:4]}
    assert len(set(kernels.values()) - {None}) >= 3, "too few kernels to tell them apart"
    for turn in turns[4:6]:
        prompt = world.files.prompt(turn.prompt)
        assert "This is turn 1; with it, at most 3 are left." in prompt
        for sample, kernel in kernels.items():
            shown = kernel is not None and world.files.kernel(kernel).strip() in prompt
            assert shown == (sample == turn.sample)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_draft_that_fails_ends_the_problem_and_no_thread_waits_for_it(
    world: World, workers: int
) -> None:
    answer = world.client.answer

    def fail_at_a_draft(request: CompletionRequest) -> str:
        if request.sample == 2:
            raise ModelUnavailableError("still 503")
        return answer(request)

    world.client.answer = fail_at_a_draft
    result = world.run(**HYBRID, workers=workers)
    assert [found.error for found in result.problems] == ["still 503"] * 2
    assert all(turn.turn == 0 for turn in world.files.turns())
    world.client.answer = answer
    assert [found.turns for found in world.run(**HYBRID, workers=workers).problems] == [9, 9]


def test_a_paid_answer_is_judged_although_the_budget_is_spent(world: World) -> None:
    # Four answers use up the tokens, and a bug keeps each from being judged.
    limits = {**HYBRID, "budget_tokens": 400, "problems": ("first",), "workers": 4}
    world.client.delay_s = 0.05
    world.executor.failures = [ZeroDivisionError("a bug")] * 4
    with pytest.raises(ZeroDivisionError):
        world.run(**limits)
    world.stop.clear()
    world.executor.failures = []
    result = world.run(**limits).problems[0]
    assert (result.turns, result.stop) == (4, Stop.TOKENS)
    assert set(world.diary.count("model").values()) == {1}


def test_idle_threads_help_once_the_drafts_are_there(world: World) -> None:
    """Each refining call waits for one of the other sample, so one thread alone would fail."""
    both, answer = threading.Barrier(2, timeout=30), world.client.write_kernel

    def meet(request: CompletionRequest) -> str:
        if request.turn:
            both.wait()
        return str(answer(request))

    world.client.answer = meet
    settings = {**HYBRID, "drafts": 3, "budget": 7, "problems": ("first",)}
    assert world.run(**settings, workers=2).problems[0].turns == 7
