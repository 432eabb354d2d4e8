"""What a problem stands at, carried on turn by turn, is what all its records together say."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from agent.record.progress import Progress, best_of
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
