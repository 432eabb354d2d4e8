"""Which timed calls of a worker are verified: the first ones, and others by lot."""

from __future__ import annotations

import secrets

_FIRST = 10
"""So many of the first worker are all verified: with few calls, a share of them would leave cheats
a chance."""
_FIRST_OF_ANOTHER, _EARLY_SHARE = 4, 0.5
"""In a further worker these, and of the others up to the tenth this share. A cheat has to be
wrong in half of all calls to move the median, and its worker may end after six."""
_SHARE = 0.25
_LEAST_SHARE = 0.2


class VerifiedCalls:
    """Draws for one call after another. Nothing shows it before a call is made."""

    def __init__(self, *, is_another: bool) -> None:
        """`is_another`: of a further worker of a candidate."""
        self._first = _FIRST_OF_ANOTHER if is_another else _FIRST
        self._made = 0
        self._verified = 0

    def next(self) -> bool:
        is_verified = self._draw()
        self._made += 1
        self._verified += is_verified
        return is_verified

    def _draw(self) -> bool:
        # Luck can't bring the share under the least one.
        if self._made < self._first or self._verified < _LEAST_SHARE * (self._made + 1):
            return True
        share = _EARLY_SHARE if self._made < _FIRST else _SHARE
        return secrets.randbelow(1000) < 1000 * share
