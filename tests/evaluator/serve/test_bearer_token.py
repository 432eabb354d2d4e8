from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.serve.bearer_token import BearerToken, fresh_token, read_token
from problems.errors import UsageError


def test_only_the_token_is_admitted() -> None:
    text = fresh_token()
    token = BearerToken(text)
    assert token.admits(f"Bearer {text}") and token.admits(f"bearer  {text} ")
    for given in ("", text, "Bearer", f"Bearer {text}x", f"Bearer {text[:-1]}", f"Basic {text}"):
        assert not token.admits(given)
    assert not token.admits("Bearer \udcff\u20ac")
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
