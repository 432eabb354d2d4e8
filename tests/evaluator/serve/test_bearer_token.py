from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.serve.bearer_token import admits, fresh_token, read_token
from problems.errors import UsageError


def test_only_the_token_is_admitted() -> None:
    text = fresh_token()
    assert admits(text, f"Bearer {text}") and admits(text, f"bearer  {text} ")
    for given in ("", text, "Bearer", f"Bearer {text}x", f"Bearer {text[:-1]}", f"Basic {text}"):
        assert not admits(text, given)
    assert not admits(text, "Bearer \udcff\u20ac")
    assert fresh_token() != text


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
