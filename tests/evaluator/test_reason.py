"""Reasons as codes on disk."""

from __future__ import annotations

from evaluator.evaluation import Evaluation
from tests.agent.made_records import incorrect


def test_a_code_of_an_earlier_version_reads_as_itself() -> None:
    told = incorrect().model_dump_json(by_alias=True).replace("wrong_values", "worked_ahead")
    old = Evaluation.model_validate_json(told)
    assert old.reason == "worked_ahead"
    assert old.reason and not old.reason.advice
    assert Evaluation.model_validate_json(old.model_dump_json(by_alias=True)) == old
