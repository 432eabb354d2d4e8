"""The second verdict on a best kernel: who gets one, what becomes of it, and what is kept."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.record.confirmation import Confirmation
from agent.record.events import Event, JudgedAgain, JudgingAgain, TurnRecorded
from agent.record.figures import ratio
from agent.record.progress import best_of
from agent.record.proof import Proof
from agent.record.result import ProblemResult, Stop
from agent.record.store import open_store
from agent.view.display import PlainLines
from agent.view.summary import summary_lines
from evaluator.errors import DeviceError, UnusableReferenceError
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from experiments.analysis.outcomes import outcomes
from experiments.export.recorded_run import outcome_of, recorded_runs
from experiments.runs import load_runs
from tests.agent.stand_in import Diary, StandInExecutor, verdict_on
from tests.agent.world import World

WRONG = Evaluation(
    status=Status.RUNTIME_ERROR, reason="forward_raised", message="RuntimeError: not this time"
)


class Doubtful(StandInExecutor):
    """Of kernels that are judged again, the first `wrong` ones are wrong."""

    def __init__(self, diary: Diary, wrong: int = 0) -> None:
        super().__init__(diary)
        self.wrong = wrong
        self.again: list[EvaluationRequest] = []
        self.failing: list[BaseException] = []
        self.may_begin = threading.Event()
        self.may_begin.set()

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        if not request.is_second:
            return super().evaluate(request)
        self.may_begin.wait(30)
        if self.failing:
            raise self.failing.pop(0)
        self.again.append(request)
        return WRONG if len(self.again) <= self.wrong else verdict_on(request.candidate.source)


@pytest.fixture
def made(tmp_path: Path) -> Callable[[int], World]:
    def make(wrong: int) -> World:
        world = World(tmp_path)
        world.executor = Doubtful(world.diary, wrong)
        return world

    return make


def only(world: World, **settings: object) -> ProblemResult:
    (found,) = world.run(problems=("first",), budget=9, **settings).problems
    return found


def test_the_best_kernel_is_judged_again(made) -> None:
    world = made(0)
    found = only(world, confirm=3, timing_seconds=2.0)
    (request,) = world.executor.again
    assert request.settings.audit == "always"
    assert request.settings.timing_seconds > 2.0
    assert request.settings.clear_width == request.settings.relative_width
    assert found.best is not None and request.candidate.hash == found.best.candidate
    assert found.confirmation is not None and found.confirmation.holds
    assert found.confirmation.found == found.best.evaluation.timing.speedup
    assert found.struck == ()
    assert len(world.seen(JudgingAgain)) == 1
    assert [each.confirmation for each in world.seen(JudgedAgain)] == [found.confirmation]
    assert found.turns == found.spent.calls == 9
    proof = Proof.model_validate_json(world.files.proof_path("first").read_bytes())
    assert proof.candidate == found.best.candidate
    assert proof.evaluation == found.confirmation.evaluation
    assert [case.reference for case in proof.cases] == [world.problem("first").source]


def test_one_that_fails_is_struck_and_the_next_best_takes_its_place(made) -> None:
    world = made(1)
    found = only(world, confirm=3)
    turns = list(world.files.turns())
    first = best_of(turns)
    assert first is not None
    second = best_of([turn for turn in turns if turn.candidate != first.candidate])
    assert [each.candidate for each in found.struck] == [first.candidate]
    assert found.best == second
    assert found.confirmation is not None and second is not None
    assert found.confirmation.candidate == second.candidate
    assert world.files.best_path("first").read_text() == world.files.kernel(second.candidate)
    assert world.files.result().problems == (found,)


def test_of_several_that_may_be_the_fastest_one_is_chosen(made, monkeypatch, capsys) -> None:
    """Its figure is of a verdict that had no part in that."""
    world = made(0)
    speedups = iter((1.5, 1.9, 1.7, 1.6))

    def wide(request: EvaluationRequest) -> Evaluation:
        found = verdict_on(request.candidate.source)
        if found.timing is None:
            return found
        if not request.is_second:
            update = {"speedup_low": found.timing.speedup - 1, "speedup_high": 9.0}
        else:
            world.executor.again.append(request)
            update = {"speedup": next(speedups)}
        return found.model_copy(update={"timing": found.timing.model_copy(update=update)})

    monkeypatch.setattr(world.executor, "evaluate", wide)
    found = only(world, confirm=3)
    assert [each.settings.audit for each in world.executor.again] == ["never"] * 3 + ["always"]
    for event in world.seen(JudgedAgain):
        PlainLines(world.config(), sys.stderr).notice(event)
    said = capsys.readouterr().err
    assert (said.count("measured to choose: "), said.count("judged again: ")) == (3, 1)
    first, chosen, _, last = world.files.confirmations("first")
    assert found.confirmation == last and last.candidate == chosen.candidate
    assert found.best.candidate == chosen.candidate and found.struck == ()
    assert found.verdict.timing.speedup == 1.6
    assert found.best.evaluation.timing.speedup < first.found
    assert world.files.best_path("first").read_text() == world.files.kernel(chosen.candidate)
    assert only(world, confirm=3) == found and len(world.executor.again) == 4
    assert outcome_of(recorded_runs([world.files.path])[0].turns).second == last
    assert outcomes(load_runs(world.files.path)).confirmed == [1.6]


def test_the_summary_tells_of_both_verdicts(made) -> None:
    world = made(1)
    found = only(world, confirm=3)
    config = world.config(problems=("first",), confirm=3)
    result = world.files.result()
    told = [text for _, text in summary_lines(result, config, [world.problem("first")])]
    (struck,) = [text for text in told if "struck" in text]
    assert "forward_raised: RuntimeError: not this time" in struck and "x in the search" in struck
    (best,) = [text for text in told if text.startswith("  best: ")]
    searched = found.best.evaluation.timing.speedup
    assert f"judged again; {ratio(searched)}x in the search" in best


def test_after_so_many_none_is_handed_over(made) -> None:
    world = made(99)
    found = only(world, confirm=2)
    assert len(world.executor.again) == len(found.struck) == 2
    assert found.best is None and found.best_path is None and found.confirmation is None
    assert not world.files.proof_path("first").exists()
    assert found.correct > 2


def test_it_can_be_turned_off(made) -> None:
    world = made(0)
    assert only(world, confirm=0).confirmation is None
    assert not world.files.proof_path("first").exists()
    assert not world.executor.again


def test_nothing_is_judged_a_third_time(made) -> None:
    world = made(1)
    found = only(world, confirm=3)
    assert len(world.executor.again) == 2
    assert only(world, confirm=3) == found
    assert len(world.executor.again) == 2
    path = world.files.confirmations_path("first")
    whole = path.read_bytes()
    # A kill tore the second line.
    path.write_bytes(whole[:-20])
    again = only(world, confirm=3)
    assert len(world.executor.again) == 3
    assert [each.candidate for each in again.struck] == [each.candidate for each in found.struck]
    assert again.confirmation == found.confirmation
    assert path.read_bytes() == whole


def test_one_that_a_kill_cuts_short_is_judged_again(made) -> None:
    world = made(0)
    world.executor.failing = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        only(world, confirm=1)
    assert not world.files.confirmations("first")
    world.stop.clear()
    found = only(world, confirm=1)
    assert found.confirmation is not None and found.confirmation.holds
    assert len(world.executor.again) == 1


def test_more_turns_may_bring_another_best(made) -> None:
    world = made(0)
    (first,) = world.run(problems=("first",), budget=2, confirm=1).problems
    found = only(world, confirm=1)
    kept = {each.candidate for each in world.files.confirmations("first")}
    assert found.best is not None and found.best.candidate in kept
    assert first.best is None or first.best.candidate in kept


def test_turns_of_another_problem_do_not_wait_for_it(made) -> None:
    world = made(0)
    world.executor.may_begin.clear()

    def at(_: int, event: Event) -> None:
        if isinstance(event, TurnRecorded) and event.problem == "second" and event.record.turn == 8:
            assert not world.executor.again
            world.executor.may_begin.set()

    world.listener.at = at
    found = world.run(budget=9, confirm=1, workers=1).problems
    assert [each.stop for each in found] == [Stop.CALLS] * 2
    first, second = world.seen(JudgedAgain)
    assert first.problem == "first" and second.problem == "second"


def test_an_interrupted_problem_is_not_confirmed(made) -> None:
    world = made(0)
    world.stop.set()
    assert only(world, confirm=3).confirmation is None
    assert not world.executor.again


def test_a_failure_of_ours_is_tried_again_and_then_told(made) -> None:
    world = made(0)
    world.executor.failing = [DeviceError("busy")] * 2
    assert only(world, confirm=1).confirmation is not None
    world = made(0)
    with open_store(world.config(problems=("first",), confirm=1)) as store:
        store.confirmations_path("first").unlink()
    world.executor.failing = [UnusableReferenceError("gone")]
    found = only(world, confirm=1)
    assert found.stop is Stop.ERROR
    assert found.error == "confirming the best kernel: gone"
    assert found.best is not None


def test_a_finding_does_not_hold() -> None:
    evaluation = verdict_on("a kernel")
    told = Confirmation(
        problem="a", candidate="b", sample=0, turn=1, found=2.0, evaluation=evaluation
    )
    assert told.holds is (evaluation.status is Status.CORRECT)
    cheat = evaluation.model_copy(update={"findings": ("input_modified: it writes",)})
    assert not told.model_copy(update={"evaluation": cheat}).holds
