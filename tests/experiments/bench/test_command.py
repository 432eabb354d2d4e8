from __future__ import annotations

import pytest

from evaluator.command.command_line import serve
from experiments.bench.__main__ import app

PROGRAM = "python -m experiments.bench"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["colour"], "colour"),
        (["latency", "--device", "cpu", "--only", "cuda"], "--only takes cpp here"),
        (["latency", "--device", "cpu", "--only", "fortran"], "fortran"),
    ],
)
def test_mistakes_are_one_line(arguments, said, capsys):
    assert serve(app, PROGRAM, arguments) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
