"""Which other way of running the reference leads to a candidate's wrong output.

The judge's own reference runs again in eval() and in lower precision, with the call's inputs.
Where an output is just what comes out then, that is what the candidate does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evaluator.judge.explaining.reference_modes import FAST_MATHS, Mode, eval_modes, precision_modes
from evaluator.judge.problem.reference import Reference, buffers_kept, flatten
from evaluator.mismatch_pattern import Pattern

_SECONDS = 2.0
"""After which no further mode is tried."""
_ROUNDING = 0.03
"""RMSE relative to the outputs' rms that lower precision leaves at most."""
_CLOSER = 20.0
"""How many times closer an output must be to what eval() gives than to the right one."""
_FEWEST_TO_CORRELATE = 64
"""With fewer elements, one of many precisions fits by luck."""
_ALIKE = 0.5
"""Share of the squared error from which on it is that of a lower precision."""
_AS_ALIKE = 0.04
"""Two precisions whose shares differ by less can't be distinguished."""
_ALIKE_SIZE = 2.0
"""How many times larger or smaller such errors may be."""


class Counterfactual(NamedTuple):
    code: Pattern
    words: str
    """`computing with bf16 explains 96% of the error`."""


def find_counterfactual(
    reference: Reference,
    arguments: list[Any],
    actual: Tensor,
    output: int,
) -> Counterfactual | None:
    """The first way found in which the reference gives `actual`; None where there is none."""
    if not _varies(actual):
        return None

    def call(module: Callable[..., Any], given: list[Any]) -> Tensor:
        with torch.no_grad(), buffers_kept(reference.model):
            return flatten(module(*given))[output]

    def run() -> Tensor:
        return call(reference.model, arguments)

    end = time.monotonic() + _SECONDS
    right = run()
    found = _in_eval(actual, right, eval_modes(reference.model, run), end)
    if found is not None:
        return found
    modes = precision_modes(reference.model, arguments, call, reference.device)
    return _less_precise(actual, right, modes, end)


def _varies(actual: Tensor) -> bool:
    """Whether it is finite and not one value throughout, which says nothing of its cause."""
    low, high = map(
        float, (torch.view_as_real(actual) if actual.is_complex() else actual).aminmax()
    )
    return math.isfinite(low) and math.isfinite(high) and (low < high or actual.numel() == 1)


def _results(modes: Iterator[Mode], end: float, shape: torch.Size) -> Iterator[tuple[str, Tensor]]:
    for mode in modes:
        if time.monotonic() > end:
            return
        try:
            result = mode.run()
        except torch.OutOfMemoryError:
            return
        except Exception:  # noqa: BLE001 - what a module raises where it was not made for it
            continue
        if result.shape == shape:
            yield mode.words, result


def _in_eval(
    actual: Tensor, right: Tensor, modes: Iterator[Mode], end: float
) -> Counterfactual | None:
    own_error = _rms(actual.double() - right.double())
    fits = []
    for words, result in _results(modes, end, actual.shape):
        error, scale = _rms(actual.double() - result.double()), _rms(result)
        if scale and error <= _ROUNDING * scale and error * _CLOSER < own_error:
            fits.append((error / scale, words))
    if not fits:
        return None
    error, words = min(fits)
    return Counterfactual(Pattern.EVAL_MODE, f"{words} (relative error {error:.1g} then)")


def _less_precise(
    actual: Tensor, right: Tensor, modes: Iterator[Mode], end: float
) -> Counterfactual | None:
    if not right.dtype == actual.dtype == torch.float32:
        return None
    errors = (actual.double() - right.double()).flatten()
    size = _rms(errors)
    if not 0 < size <= _ROUNDING * _rms(right):
        return None
    alike: list[tuple[float, str]] = []
    for names, result in _results(modes, end, right.shape):
        theirs = (result.double() - right.double()).flatten()
        ratio, share = _rms(theirs) / size, 0.0
        if not 0 < ratio < math.inf:
            continue
        if names == FAST_MATHS:
            # Their sign and their place say nothing: these depend on how a function is computed.
            share = min(1.0, ratio)
        elif right.numel() >= _FEWEST_TO_CORRELATE and 1 / _ALIKE_SIZE <= ratio <= _ALIKE_SIZE:
            own, theirs = _of_random_sign(errors, right), _of_random_sign(theirs, right)
            share = max(0.0, float(torch.cosine_similarity(own, theirs, 0))) ** 2
        if share >= _ALIKE:
            alike.append((share, names))
    if not alike:
        return None
    alike.sort(reverse=True)
    most = alike[0][0]
    best = [each for share, each in alike if share > most - _AS_ALIKE]
    precisions = dict.fromkeys(name for each in best for name in each.split(" or "))
    words = f"computing with {' or '.join(precisions)} explains {most:.0%} of the error"
    return Counterfactual(Pattern.PRECISION, words)


def _of_random_sign(errors: Tensor, right: Tensor) -> Tensor:
    """Without what is constant or a multiple of the right values: that is alike for all causes."""
    own = right.double().flatten()
    own, errors = own - own.mean(), errors - errors.mean()
    return errors - own * (float(errors @ own) / (float(own @ own) or 1.0))


def _rms(tensor: Tensor) -> float:
    return float(tensor.double().square().mean().sqrt())
