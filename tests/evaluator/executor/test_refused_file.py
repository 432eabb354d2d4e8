"""Which files are refused without a judge, and that its words would be the same."""

from __future__ import annotations

import pytest

from evaluator.executor.refused_file import refused_file
from tests.evaluator.made_requests import HONEST, evaluation_request

OF_ANOTHER_NAME = HONEST.replace("ModelNew", "Model")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("class ModelNew(:\n", "syntax_error"),
        ("class ModelNew:\npass\n", "import_raised"),
        (OF_ANOTHER_NAME, "no_model_new"),
        ('"""A kernel."""\nimport torch\n', "no_model_new"),
    ],
)
def test_the_words_are_those_of_a_judge(judge, source, reason):
    asked = evaluation_request(source)
    early, judged = refused_file(asked), judge.evaluate(asked)
    assert early.reason == judged.reason == reason
    assert (early.status, early.message, early.detail, early.device) == (
        *(judged.status, judged.message, judged.detail, judged.device),
    )


@pytest.mark.parametrize("more", ["import os\nos._exit(3)\n", "from math import *\n", "raise E\n"])
def test_what_only_a_process_can_tell_is_left_to_it(more):
    assert refused_file(evaluation_request(HONEST)) is None
    assert refused_file(evaluation_request(OF_ANOTHER_NAME + more)) is None
    assert refused_file(evaluation_request(f"x = f'{'{a}' * 2**16}'\n")) is None
