"""Identical kernels within a run: judged once, charged in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.record.turn import TurnSeconds
from evaluator.evaluation import Evaluation, EvaluationRequest, Seconds, Status
from tests.agent.stand_in import SOUND_KERNEL, StandInExecutor, kernel_answer
from tests.agent.world import World
from tests.evaluator.made_evaluations import unbuilt


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.client.answer = lambda _: SOUND_KERNEL
    return world


def test_a_kernel_that_comes_again_is_neither_judged_nor_profiled_again(world: World) -> None:
    world.run()
    assert sorted(world.diary.count("judge").values()) == [1, 1], "once for each problem"
    assert sorted(world.diary.count("profile").values()) == [1, 1]
    for name in ("first", "second"):
        first, *others = world.turns(name)
        assert (first.judged_with, first.profiled_with) == ("", "")
        assert first.profile is not None
        for turn in others:
            assert turn.judged_with == turn.profiled_with == f"{name}.0.0"
            assert turn.evaluation == first.evaluation.model_copy(update={"seconds": Seconds()})
            assert turn.profile == first.profile
            assert turn.seconds == TurnSeconds(model=0.5)


def test_calls_tokens_and_dollars_are_charged_as_ever(world: World) -> None:
    spent = world.run(problems=("first",), budget=4).spent
    assert (spent.calls, spent.tokens) == (4, 4 * 120)
    assert spent.cost_usd == pytest.approx(0.04)
    assert spent.seconds.judge == 1.0 and spent.seconds.model == 4 * 0.5
    assert spent.seconds.profile >= 0.125


def test_two_in_flight_at_once_the_second_waits_for_the_first(world: World) -> None:
    world.executor.delay_s = 0.3
    world.run(strategy="sample", feedback="none", problems=("first",), budget=6, workers=6)
    assert world.diary.count("judge").total() == 1
    (judged,) = [turn for turn in world.turns() if not turn.judged_with]
    named = [turn.judged_with for turn in world.turns() if turn.judged_with]
    assert named == [f"first.{judged.sample}.0"] * 5


class Late(StandInExecutor):
    """Ends every kernel for taking too long."""

    verdict = Evaluation(status=Status.TIMEOUT, reason="call_timeout", message="too long")

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        super().evaluate(request)
        return self.verdict


@pytest.mark.parametrize(
    "verdict",
    [Late.verdict, unbuilt(timed_out=True)],
    ids=["a call", "a compiler"],
)
def test_what_took_too_long_may_be_quicker_another_time(world: World, verdict: Evaluation) -> None:
    late = world.executor = Late(world.diary)
    late.verdict = verdict
    world.run(problems=("first",), budget=3)
    assert world.diary.count("judge").total() == 3
    assert [turn.judged_with for turn in world.turns()] == ["", "", ""]


def test_where_drafts_are_shared_no_profile_is_made_that_no_prompt_shows(world: World) -> None:
    world.run(feedback="G+E+P", budget=3, shared_drafts=True)
    assert [turn.is_profiled for turn in world.turns() if turn.is_correct] == [True, True, False]


def test_a_profiler_that_failed_is_asked_again(world: World) -> None:
    answers = (kernel_answer(digest) for digest in range(1000))
    kept: list[str] = []

    def repeat(_: object) -> str:
        kept.append(kept[-1] if len(kept) % 2 else next(answers))  # each kernel twice
        return kept[-1]

    world.client.answer = repeat
    world.run(problems=("first",), budget=16)
    failed = [turn for turn in world.turns() if turn.profile_error]
    assert failed and not any(turn.profiled_with or turn.profile for turn in failed)
    assert all(turn.evaluation.timing for turn in failed), "it costs the turn its profile alone"
    assert world.diary.count("profile").total() == len(failed) + len(
        [turn for turn in world.turns() if turn.profile and not turn.profiled_with]
    )
    assert [turn.judged_with != "" for turn in world.turns() if turn.candidate] == [False, True] * 8
