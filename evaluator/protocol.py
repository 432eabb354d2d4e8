"""Whose rules decide: who draws inputs, which flags and tolerance hold, what is a finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evaluator.settings import Precision, Protocol


@dataclass(frozen=True)
class Rules:
    """The rules of one protocol; by default our own."""

    inputs: Literal["varied", "scaled", "recipe"] = "varied"
    """As the problem's recipe draws them, also with other scales, or also with other signs."""
    repeats_inputs: bool = True
    """Some calls get nearly the inputs of the call before."""
    fp32_tolerance: float | None = None
    """Relative and absolute, of `torch.allclose`, also for TF32; None: `accept_rule` decides."""
    allows_tf32: bool = False
    pytorch_flags: bool = False
    """The flags are those that PyTorch starts with."""
    tries_default_flags: bool = True
    """Eager with PyTorch's default flags is a baseline where it takes another time."""
    in_one_process: bool = False
    """Candidate and reference run as in one process of PyTorch's: constructed from the public seed
    and moved before each call, on writable inputs that always lie at one address, timed in one
    worker and as called."""
    rejects: bool = True
    """What our own checks find refuses a candidate; otherwise it is noted as a finding."""
    first_calls: int = 3
    """Calls that are all verified before any time is spent on timing."""

    def tolerance(self, precision: Precision) -> float | None:
        """Of `torch.allclose`; None where `accept_rule` decides."""
        wide = precision in (Precision.FP32, Precision.TF32)
        return self.fp32_tolerance if wide or self.fp32_tolerance is None else 1e-2


RULES: Mapping[Protocol, Rules] = {
    "refinery": Rules(),
    "kernelbench": Rules(
        inputs="recipe",
        repeats_inputs=False,
        fp32_tolerance=1e-4,
        pytorch_flags=True,
        tries_default_flags=False,
        in_one_process=True,
        rejects=False,
        first_calls=5,
    ),
    "verified": Rules(
        inputs="scaled",
        repeats_inputs=False,
        fp32_tolerance=1e-3,
        allows_tf32=True,
        tries_default_flags=False,
    ),
}
