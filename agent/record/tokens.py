"""How many tokens a text is, where nobody counted them."""

from __future__ import annotations

from collections.abc import Iterable

CHARACTERS_PER_TOKEN = 4
"""A common rule of thumb for English and code; right within about a third."""


def estimated_tokens(texts: Iterable[str]) -> int:
    """Tokens by rule of thumb: characters / 4, rounded up. Never a basis for a bill."""
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)
