"""What the command reads before it serves: its token and its problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from problems.errors import UnknownProblemError, UsageError
from tests.tools.serve.server_at_hand import suite_in
from tools.serve.__main__ import problem_finder, read_token
from tools.serve.batch import MalformedError, read_batch


def test_a_file_holds_one_word(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(" 0123456789abcdef\n")
    assert read_token(path) == "0123456789abcdef"
    for text in (b"", b"short", b"two words, but long enough", b"\xff" * 20, "é".encode() * 20):
        path.write_bytes(text)
        with pytest.raises(UsageError, match="--token-file"):
            read_token(path)
    with pytest.raises(UsageError, match="can't read"):
        read_token(tmp_path / "nothing")


def test_a_problem_is_read_once_whatever_it_is_called(tmp_path: Path) -> None:
    find = problem_finder(suite_in(tmp_path))
    kept = find("level1_1_matmul")
    (tmp_path / "level1" / "1_matmul.py").write_text(kept.source + "# changed\n")
    for name in ("1/1", "LEVEL1_1_matmul", "level1/1_MatMul.py", "Matmul"):
        assert find(name) is kept
    with pytest.raises(UnknownProblemError):
        find("level1_2_matmul")


def test_as_much_is_read_as_may_wait() -> None:
    longest = {"problem": "x", "source": '\\"' * 2**19}
    asked = {"client": "a", "candidates": [longest] * 3}
    assert read_batch(json.dumps(asked, indent=1).encode(), 3)
    longest["source"] += "#"
    with pytest.raises(MalformedError, match=r"candidates\.0\.source"):
        read_batch(json.dumps(asked).encode(), 3)
