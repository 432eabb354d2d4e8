"""Whether inputs of another scale or sign are fit to judge a problem by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from evaluator.judge.blockwise import finite
from evaluator.judge.bounds import work_rules
from evaluator.judge.correctness.accept_rule import FP32_ROUND_OFF
from evaluator.judge.correctness.comparison import compare
from evaluator.judge.operator_mode import OperatorCall, OperatorMode, storage_of, tensors_in
from evaluator.judge.problem.reference import Reference, flatten_arguments
from evaluator.judge.problem.variation import Kind, fresh_seed, kind_of, of_kind
from evaluator.protocol import RULES
from evaluator.settings import Precision, Settings

_NOISY_RUNS = 2
_HARSH = (Kind.LARGER, Kind.SIGNED)
_HARMLESS = (Kind.PLAIN, Kind.SMALLER, Kind.UNEVEN, Kind.BIASED)


def is_fit(
    reference: Reference,
    kind: Kind,
    exact: Callable[[int], Sequence[Tensor] | None],
    settings: Settings,
    accumulation: int,
    *,
    is_random: bool,
) -> bool:
    """Whether the reference takes inputs of a kind, and can be judged by them.

    Integers among them must be those of a plain draw, and outputs finite. And where an honest
    implementation, which rounds otherwise, would be refused, the problem is too badly conditioned
    with larger or signed inputs. `exact`: gives the outputs in fp64 for a seed, or None.
    """
    seed = fresh_seed(kind)
    try:
        if not _gives_finite(reference, seed):
            return False
        if (
            kind not in _HARSH
            or is_random
            or reference.changes_inputs
            or RULES[settings.protocol].fp32_tolerance is not None
        ):
            return True
        return _survives_rounding(reference, seed, exact, settings.precision, accumulation)
    except torch.OutOfMemoryError:
        # Verifying needs no more memory than a plain call; this does.
        return False
    except Exception:  # noqa: BLE001 - what a module raises on numbers that it was not made for
        return False


def is_taken(reference: Reference, seed: int) -> bool:
    """Whether the reference takes one draw of a kind that is fit: another draw may still be too
    large for it, and a candidate may not be judged by that. Raises `torch.OutOfMemoryError`."""
    if kind_of(seed) in _HARMLESS:
        return True
    try:
        return _gives_finite(reference, seed)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001 - what a module raises on numbers that it was not made for
        return False


def _gives_finite(reference: Reference, seed: int) -> bool:
    values = reference.varied_inputs(seed)
    counts = [tensor for tensor in flatten_arguments(values) if _counts(tensor)]
    if counts:
        plain = flatten_arguments(reference.varied_inputs(of_kind(seed, Kind.PLAIN)))
        if not all(map(torch.equal, counts, filter(_counts, plain))):
            return False
    return all(map(finite, reference.expected(values)))


def _survives_rounding(
    reference: Reference,
    seed: int,
    exact: Callable[[int], Sequence[Tensor] | None],
    precision: Precision,
    accumulation: int,
) -> bool:
    expected, right = reference.expected(reference.varied_inputs(seed)), exact(seed)
    for run in range(_NOISY_RUNS):
        values = reference.varied_inputs(seed)
        with RoundingNoise(reference.device, seed + run):
            noisy = reference.expected(values)
        del values
        verdict = compare(
            *(noisy, expected, right, (), precision),
            accumulation=accumulation,
            describing=False,
        )
        if not verdict.ok:
            return False
    return True


def _counts(tensor: Tensor) -> bool:
    real = tensor.is_floating_point() or tensor.is_complex()
    return not real and tensor.dtype is not torch.bool


class RoundingNoise(OperatorMode):
    """While it is entered, operators return results that are rounded once more.

    Each element is off by up to one unit round-off of its own size. Behind a sum of n terms it is
    also off by up to half of 2^-24 sqrt(n), as the accept rule's floor has it: of the result's rms,
    or of its own size behind a softmax, whose sum it was divided by.
    """

    def __init__(self, device: torch.device, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator(device=device).manual_seed(seed)

    def result_of(self, call: OperatorCall) -> Any:
        operands, result = call.operands, call.run()
        made = tensors_in(result)
        given = {storage_of(tensor) for tensor in operands}
        terms = work_rules.accumulation(call.name, call.args, operands, made)
        for tensor in made:
            fresh = storage_of(tensor) not in given
            if fresh and tensor.is_floating_point() and tensor.numel():
                self._round(tensor, terms, relative="softmax" in call.name)
        return result

    def _round(self, tensor: Tensor, terms: int, *, relative: bool) -> None:
        noise = torch.empty_like(tensor).uniform_(-1.0, 1.0, generator=self._generator)
        of_sum = FP32_ROUND_OFF * math.sqrt(terms) / 2 if terms > 1 else 0.0
        own = torch.finfo(tensor.dtype).eps / 2 + (of_sum if relative else 0.0)
        rms = torch.linalg.vector_norm(tensor) / math.sqrt(tensor.numel())
        tensor.addcmul_(tensor, noise, value=own)
        if of_sum and not relative:
            noise.uniform_(-1.0, 1.0, generator=self._generator)
            tensor.add_(noise.mul_(rms), alpha=of_sum)
