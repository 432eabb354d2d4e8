"""Inputs that a problem's recipe allows, but rarely gives: other scales and signs, or nearly the
last ones.

A candidate may rely on what kind of numbers the recipe draws, not on what a draw usually looks
like. So some calls get draws that are smaller, that differ in size from row to row, that are much
larger, or whose uniform numbers have random signs. Without these the identity would pass for a ReLU
of uniform numbers, and a softmax that takes off no maximum would pass as well. Other draws are such
that rounding them to a lower precision shifts them all in one direction, because a mean over many
elements hides errors of random sign. The draws are changed and not the finished tensors: what is
made from them afterwards (targets of +1 and -1, probabilities) stays what it is. A kind is
used only where the reference stays finite with it.

And some calls get the inputs of the call before with one element of each changed, so that a
candidate that recognises inputs by a few elements is wrong.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_BASE_BITS, _TOUCH_BITS = 56, 6
_KIND_BITS = 4
_UNIFORM = (torch.rand, torch.rand_like)
_REAL = (torch.randn, torch.randn_like, *_UNIFORM)
_DRAWS = (*_REAL, torch.randint)
_SMALLEST = 2.0**-3
_LARGER = (96.0, 128.0)
"""Least and greatest factor: exp of the largest of some uniform numbers overflows in fp32."""
_BLOCK = 2**24
_CLEARED, _ABOVE_HALF = 0x9FFF, 0x9001
"""The low 13 bits are those that TF32 and fp16 lack; with bit 15, bf16 rounds up too, and without
it down. Two random bits between them stay."""


class Kind(StrEnum):
    PLAIN = "plain"
    SMALLER = "smaller"
    """All by the same factor, down to an eighth."""
    UNEVEN = "uneven"
    """Each index of one dimension by a factor of its own, down to an eighth."""
    LARGER = "larger"
    """All by the same factor, 96 to 128."""
    SIGNED = "signed"
    """Uniform numbers get random signs."""
    BIASED = "biased"
    """From a random index of the first dimension on, all lie just above halfway between two numbers
    of TF32, and in the upper half between two of bf16; those before it are numbers of TF32, and lie
    in the lower half between two of bf16."""
    TRIPLED = "tripled"
    HUNDREDTH = "hundredth"
    NEGATED = "negated"


FACTORS = {Kind.TRIPLED: 3.0, Kind.HUNDREDTH: 0.01, Kind.NEGATED: -1.0}
"""Of KernelBench-Verified (arXiv 2607.16241): the finished real tensors times a factor."""
_KINDS = tuple(Kind)


def fresh_seed(kind: Kind = Kind.PLAIN) -> int:
    """A secret seed whose lowest bits name a kind: what it leads to is fixed by it alone."""
    bits = secrets.randbits(_BASE_BITS - _KIND_BITS)
    return bits << _KIND_BITS | _KINDS.index(kind)


def kind_of(seed: int) -> Kind:
    return _KINDS[seed & ((1 << _KIND_BITS) - 1)]


def of_kind(seed: int, kind: Kind) -> int:
    """The seed of the same random numbers, treated in another way."""
    return seed >> _KIND_BITS << _KIND_BITS | _KINDS.index(kind)


def nearly(seed: int) -> int:
    """Another seed, for the inputs of `seed` with one element of each draw changed."""
    # Never the touch that `seed` has: that would be the same inputs once more.
    steps = 1 + secrets.randbelow((1 << _TOUCH_BITS) - 2)
    most = (1 << _TOUCH_BITS) - 1
    touch = (seed >> _BASE_BITS) - 1 + steps if seed >> _BASE_BITS else steps
    return seed & ((1 << _BASE_BITS) - 1) | (1 + touch % most) << _BASE_BITS


def is_near(seed: int) -> bool:
    return seed >> _BASE_BITS > 0


def base(seed: int) -> int:
    return (seed & ((1 << _BASE_BITS) - 1)) >> _KIND_BITS


class Variation(TorchFunctionMode):
    """While it is entered, what PyTorch draws is varied as `seed` says.

    Draws that have a dimension in common get the same factors: a row's mean and its spread, drawn
    apart, keep the proportion that the recipe gives them, and with it how exactly an honest kernel
    can compute.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._kind = kind_of(seed)
        self._seed = seed
        self._touched = is_near(seed)
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
        drawn = func(*args, **(kwargs or {}))
        if func in _DRAWS and drawn.is_contiguous():
            # The same memory; one that asks for its gradient may not be written to otherwise.
            changed = drawn.detach()
            if func in _REAL and changed.dim():
                self._change(changed, uniform=func in _UNIFORM)
            self._touch(changed)
        return drawn

    def _change(self, drawn: torch.Tensor, *, uniform: bool) -> None:
        if self._kind is Kind.SIGNED:
            if uniform:
                self._sign(drawn)
        elif self._kind is Kind.BIASED:
            if drawn.dtype is torch.float32:
                self._bias(drawn)
        elif self._kind in (Kind.SMALLER, Kind.UNEVEN, Kind.LARGER):
            drawn.mul_(self._scales_of(drawn))

    def _sign(self, drawn: torch.Tensor) -> None:
        generator = torch.Generator(device=drawn.device).manual_seed(base(self._seed))
        flat = drawn.view(-1)
        for start in range(0, flat.numel(), _BLOCK):
            part = flat[start : start + _BLOCK]
            signs = torch.randint(0, 2, part.shape, generator=generator, device=drawn.device)
            part.mul_(signs.mul_(2).sub_(1))

    def _bias(self, drawn: torch.Tensor) -> None:
        # Each draw has its own, so that two draws do not change in proportion. Half of the indices
        # at least are shifted: a mean over all must show it.
        most = drawn.shape[0] // 2 + 1
        first = int(torch.randint(most, (), generator=self._scales, device="cpu"))
        drawn.view(torch.int32).bitwise_and_(~_CLEARED)
        flat = drawn[first:].view(-1).view(torch.int32)
        for start in range(0, flat.numel(), _BLOCK):
            part = flat[start : start + _BLOCK]
            # Zeros stay: a kernel may flush numbers as small as their low bits to zero.
            part.bitwise_or_((part != 0).int().mul_(_ABOVE_HALF))

    def _touch(self, drawn: torch.Tensor) -> None:
        if self._touched and drawn.numel() > 1:
            count = drawn.numel()
            here, step = torch.randint(
                1, count, (2,), generator=self._places, device="cpu"
            ).tolist()
            drawn.view(-1)[here] = drawn.view(-1)[(here + step) % count]

    def _scales_of(self, drawn: torch.Tensor) -> torch.Tensor:
        which, size = 0, 1
        if self._kind is Kind.UNEVEN:
            which = self._dimension % drawn.dim()
            size = drawn.shape[which]
        if (which, size) not in self._exponents:
            exponents = torch.rand(size, generator=self._scales, device="cpu")
            self._exponents[which, size] = exponents
        shape = [1] * drawn.dim()
        shape[which] = size
        exponents = self._exponents[which, size]
        if self._kind is Kind.LARGER:
            least, greatest = _LARGER
            factors = least * (greatest / least) ** exponents
        else:
            factors = _SMALLEST**exponents
        return factors.view(shape).to(drawn)
