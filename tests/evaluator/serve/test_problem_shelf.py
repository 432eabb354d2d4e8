"""Problems are kept once, however clients spell their names."""

from pathlib import Path

import pytest

from evaluator.serve.problem_shelf import ProblemShelf
from problems.errors import UnknownProblemError
from tests.evaluator.serve.server_at_hand import suite_in


def test_a_problem_is_kept_once_whatever_it_is_called(tmp_path: Path) -> None:
    shelf = ProblemShelf(suite_in(tmp_path))
    kept = shelf.find("level1_1_matmul")
    for name in ("1/1", "LEVEL1_1_matmul", "level1/1_MatMul.py", "Matmul"):
        assert shelf.find(name) is kept


def test_what_was_read_stays_as_it_was(tmp_path: Path) -> None:
    shelf = ProblemShelf(suite_in(tmp_path))
    kept = shelf.find("level1_1_matmul")
    (tmp_path / "level1" / "1_matmul.py").write_text(kept.source + "# changed\n")
    assert shelf.find("1/1").source == kept.source
    with pytest.raises(UnknownProblemError):
        shelf.find("level1_2_matmul")
