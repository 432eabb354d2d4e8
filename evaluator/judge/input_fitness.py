"""Whether inputs of another scale or sign are fit to judge a problem by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from evaluator.evaluation import Settings
from evaluator.judge.correctness import TOLERANCES, compare
from evaluator.judge.reference import Reference, flatten_arguments
from evaluator.judge.rounding_noise import RoundingNoise
from evaluator.judge.variation import Kind, kind_of, of_kind

_NOISY_RUNS = 2
_HARSH = (Kind.LARGER, Kind.SIGNED)


def is_fit(
    reference: Reference,
    seed: int,
    exact: Callable[[], Sequence[Tensor] | None],
    settings: Settings,
    accumulation: int,
    *,
    is_random: bool,
) -> bool:
    """Whether the reference takes the inputs of `seed`, and can be judged by them.

    Integers among them must be those of a plain draw, and outputs finite. And where an honest
    implementation, which rounds otherwise, would be refused, the problem is too badly conditioned
    with larger or signed inputs. `exact`: gives the outputs in fp64, or None.
    """
    plain, varied = (
        flatten_arguments(reference.varied_inputs(each))
        for each in (of_kind(seed, Kind.PLAIN), seed)
    )
    if any(_counts(a) and not torch.equal(a, b) for a, b in zip(plain, varied, strict=True)):
        return False
    del plain, varied
    try:
        expected = reference.expected(reference.varied_inputs(seed))
        if not all(bool(torch.isfinite(tensor).all()) for tensor in expected):
            return False
        if (
            kind_of(seed) not in _HARSH
            or is_random
            or reference.changes_inputs
            or settings.protocol in TOLERANCES
        ):
            return True
        right = exact()
        for run in range(_NOISY_RUNS):
            values = reference.varied_inputs(seed)
            with RoundingNoise(reference.device, seed + run):
                noisy = reference.expected(values)
            del values
            if not compare(
                *(noisy, expected, right, (), settings.precision),
                accumulation=accumulation,
                describing=False,
            ).ok:
                return False
    except torch.OutOfMemoryError:
        # Verifying needs no more memory than a plain call; this does.
        return False
    except Exception:  # noqa: BLE001 - what a module raises on numbers that it was not made for
        return False
    return True


def _counts(tensor: Tensor) -> bool:
    """Whether it holds integers, which may be indices."""
    real = tensor.is_floating_point() or tensor.is_complex()
    return not real and tensor.dtype is not torch.bool
