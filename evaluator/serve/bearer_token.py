"""The token that every request has to bring: only its owners may have candidates judged."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

from problems.errors import UsageError

_SCHEME = "bearer"
_LEAST = 16
"""Characters, so that it cannot be guessed."""


def admits(token: str, authorization: str) -> bool:
    """Whether the header says `Bearer` and the token; compares in constant time."""
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
    return same and scheme.lower() == _SCHEME


def fresh_token() -> str:
    return secrets.token_urlsafe(32)


def read_token(path: Path) -> str:
    """The token that a file holds. Raises `UsageError` where it holds none that is good."""
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: can't read {path} ({error})") from None
    if len(text) < _LEAST or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(
            f"--token-file: {path} must hold one word of at least {_LEAST} ASCII characters"
        )
    return text
