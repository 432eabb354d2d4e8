"""What a problem stands at, carried on turn by turn, is what all its records together say."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from agent.record.progress import Progress, best_of, rank
from agent.record.result import spent_on
from evaluator.evaluation import Evaluation, Status
from tests.agent.made_records import correct, incorrect, turn

EVALUATIONS = st.sampled_from([correct(1.0), correct(2.0), incorrect()])


@given(
    st.lists(EVALUATIONS, max_size=8).flatmap(lambda found: st.permutations([*enumerate(found)]))
)
def test_it_is_what_the_records_say_in_whatever_order(found: list[tuple[int, Evaluation]]) -> None:
    turns = [turn(call, evaluation) for call, evaluation in found]
    progress = reduce(Progress.after, turns, Progress())
    assert progress.best == best_of(turns)
    assert progress.last == max(turns, key=lambda record: record.call, default=None)
    assert progress.turns == len(turns)
    assert progress.correct == sum(e.status is Status.CORRECT for _, e in found)
    assert progress.spent == spent_on(turns)
    assert progress.problem_hash == (turns[0].problem_hash if turns else None)


def test_best_is_the_fastest_correct_one_and_the_earliest_of_equals() -> None:
    turns = [turn(0, incorrect())]
    turns += [turn(call, correct(speedup)) for call, speedup in enumerate((1.5, 2.0, 2.0, 0.9), 1)]
    best = best_of(turns)
    assert best is not None and best.turn == 2
    assert best_of(turns[:1]) is None
    assert best_of(list(reversed(turns))) == best


def test_a_correct_kernel_without_a_time_is_better_than_none() -> None:
    untimed = turn(0, correct().model_copy(update={"timing": None}))
    assert best_of([untimed]) == untimed
    slow = turn(1, correct(0.1))
    assert best_of([untimed, slow]) == slow


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
    cheat = turns[5]
    assert best_of([cheat]) is None and best_of([cheat, turns[4]]) == turns[4]
