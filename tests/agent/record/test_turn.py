"""A turn's payload fits its stage."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent.record.turn import PendingTurn
from evaluator.evaluation import Evaluation, Status
from tests.agent.made_records import correct

TURN = PendingTurn(prompt="p", completion="c")
NO_CODE = Evaluation(status=Status.NO_CODE, reason="no_code")


def test_a_profiler_that_failed_has_profiled() -> None:
    judged = TURN.updated(candidate="k", evaluation=correct())
    assert not judged.is_profiled
    assert judged.updated(profile_error="no counters").is_profiled


@pytest.mark.parametrize(
    ("news", "told"),
    [
        ({"evaluation": correct()}, "correct with candidate None"),
        ({"candidate": "k", "evaluation": NO_CODE}, "no_code with candidate k"),
        ({"candidate": "k", "profile_error": "late"}, "only a correct kernel"),
        ({"evaluation": NO_CODE, "profile_error": "late"}, "only a correct kernel"),
        ({"judged_with": "first.0.0"}, "taken over"),
        ({"evaluatoin": NO_CODE}, "evaluatoin"),
    ],
)
def test_what_does_not_fit_is_refused(news: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TURN.updated(**news)
