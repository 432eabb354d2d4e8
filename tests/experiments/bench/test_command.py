from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"runs": 3}'])
def test_a_file_of_something_else_is_never_written_over(text, tmp_path: Path, capsys):
    out = tmp_path / "out.json"
    out.write_text(text)
    assert serve(app, PROGRAM, ["latency", "--device", "cpu", "--out", str(out)]) == 2
    assert "move it away" in capsys.readouterr().err
    assert out.read_text() == text
