"""Inputs that a problem's recipe allows, but rarely gives: other scales, or nearly the last ones.

A candidate may rely on what the recipe says of its inputs, not on what a draw from it usually looks
like. Where a recipe draws normal numbers, any number of their size may come: some calls get smaller
ones, or rows of different sizes, never larger ones than a plain draw could hold. And some calls get
the inputs of the call before with one element of each changed, so that whoever remembers outputs by
a look at a few elements is wrong. What is made from the draws afterwards (a spread, labels) follows
them, so that whatever must fit still fits.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_BASE_BITS, _TOUCH_BITS = 56, 6
_NORMAL = (torch.randn, torch.randn_like)
_DRAWS = (*_NORMAL, torch.rand, torch.rand_like, torch.randint)
_SMALLEST = 2.0**-3


def fresh_seed() -> int:
    """A secret seed, 62 bits: what it leads to is fixed by it alone."""
    return secrets.randbits(_BASE_BITS)


def nearly(seed: int) -> int:
    """Another seed, for the inputs of `seed` with one element of each draw changed."""
    # Never the touch that `seed` has: that would be the same inputs once more.
    steps = 1 + secrets.randbelow((1 << _TOUCH_BITS) - 2)
    most = (1 << _TOUCH_BITS) - 1
    touch = (seed >> _BASE_BITS) - 1 + steps if seed >> _BASE_BITS else steps
    return base(seed) | (1 + touch % most) << _BASE_BITS


def base(seed: int) -> int:
    """The part of a seed that the random numbers come from."""
    return seed & ((1 << _BASE_BITS) - 1)


class Variation(TorchFunctionMode):  # type: ignore[misc]
    """While it is entered, what PyTorch draws is varied as `seed` says.

    Half of the seeds leave scales alone, a quarter make all draws smaller by the same factor, a
    quarter each index of one dimension. Draws that have this dimension in common get the same
    factors: a row's mean and its spread, drawn apart, keep the proportion that the recipe gives
    them, and with it how exactly an honest kernel can compute.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._kind = ("plain", "plain", "smaller", "uneven")[seed & 3]
        self._touched = seed != base(seed)
        self._scales = torch.Generator().manual_seed(base(seed))
        self._dimension = int(torch.randint(12, (), generator=self._scales, device="cpu"))
        self._exponents: dict[tuple[int, int], torch.Tensor] = {}
        """By dimension and size."""
        # PyTorch's generator on a CPU knows the lowest 32 bits of its seed only.
        places = base(seed) << _TOUCH_BITS | seed >> _BASE_BITS
        self._places = torch.Generator().manual_seed(places % 2**63)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Let PyTorch draw, and change what came."""
        drawn = func(*args, **(kwargs or {}))
        if func in _DRAWS and drawn.is_contiguous():
            # The same memory; one that asks for its gradient may not be written to otherwise.
            self._vary(drawn.detach(), normal=func in _NORMAL)
        return drawn

    def _vary(self, drawn: torch.Tensor, *, normal: bool) -> None:
        if normal and self._kind != "plain" and drawn.dim():
            drawn.mul_(self._scales_of(drawn))
        if self._touched and drawn.numel() > 1:
            count = drawn.numel()
            here, step = torch.randint(
                1, count, (2,), generator=self._places, device="cpu"
            ).tolist()
            drawn.view(-1)[here] = drawn.view(-1)[(here + step) % count]

    def _scales_of(self, drawn: torch.Tensor) -> torch.Tensor:
        which, size = 0, 1
        if self._kind == "uneven":
            which = self._dimension % drawn.dim()
            size = drawn.shape[which]
        if (which, size) not in self._exponents:
            exponents = torch.rand(size, generator=self._scales, device="cpu")
            self._exponents[which, size] = exponents
        shape = [1] * drawn.dim()
        shape[which] = size
        return (_SMALLEST ** self._exponents[which, size]).view(shape).to(drawn)
