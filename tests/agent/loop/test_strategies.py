"""What is remembered, and which kernel is the best."""

from pathlib import Path

from agent.config.run_config import RunConfig
from agent.prompt.feedback import Memory, remember
from agent.record.progress import best_of, rank
from evaluator.evaluation import Evaluation, Status
from tests.agent.made_records import correct, incorrect, turn


def run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"output": Path("x"), **settings})


def test_sample_has_no_letters_and_no_memory() -> None:
    config = run(strategy="sample", feedback="G+E+P")
    assert not config.shown_feedback
    assert remember(config, [turn(0)]) == Memory()


def test_best_is_the_fastest_correct_one_and_the_earliest_of_equals() -> None:
    turns = [
        turn(0, incorrect()),
        turn(1, correct(1.5)),
        turn(2, correct(2.0)),
        turn(3, correct(2.0)),
        turn(4, correct(0.9)),
    ]
    best = best_of(turns)
    assert best is not None and best.turn == 2
    assert best_of(turns[:1]) is None
    assert best_of(list(reversed(turns))) == best


def test_a_correct_kernel_without_a_time_is_better_than_none() -> None:
    untimed = turn(0, correct().model_copy(update={"timing": None}))
    assert best_of([untimed]) == untimed
    slow = turn(1, correct(0.1))
    assert best_of([untimed, slow]) == slow


def test_one_that_cheats_is_never_the_best() -> None:
    cheat = turn(0, correct(99.0).model_copy(update={"findings": ("below_floor: no work",)}))
    honest = turn(1, correct(1.1))
    assert best_of([cheat]) is None
    assert best_of([cheat, honest]) == honest


def test_kernels_that_are_not_correct_are_ranked_by_how_far_they_came() -> None:
    turns = [
        turn(0, Evaluation(status=Status.NO_CODE, reason="no_code"), candidate=None),
        turn(1, incorrect()),
        turn(2, Evaluation(status=Status.TIMEOUT, reason="call_timeout")),
        turn(3, incorrect()),
        turn(4, correct(0.5)),
        turn(5, correct(9.0).model_copy(update={"findings": ("below_floor: no work",)})),
        turn(6, correct(2.0)),
    ]
    assert [each.turn for each in sorted(turns, key=rank)] == [6, 4, 5, 1, 3, 2, 0]


def test_a_regression_is_not_refined() -> None:
    turns = [turn(0, correct(2.0)), turn(1, correct(1.1))]
    memory = remember(run(), turns)
    assert (memory.base, memory.which) == (turns[0], "the best so far")
    assert memory.last == turns[1]
    memory = remember(run(start_from="last"), turns)
    assert (memory.base, memory.which) == (turns[1], "the last")
