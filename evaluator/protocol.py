"""Whose rules decide: who draws inputs, which flags and tolerance hold, what is a finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    half_tolerance: float = 1e-2
    """The same for 16 bits."""
    by_output: bool = False
    """An output's own dtype says which of them holds, and not the task's precision."""
    one_seed: bool = False
    """Each call gets the inputs of one public seed, so that all calls at one size get the same."""
    sweeps: bool = False
    """A problem's hidden sizes decide. At its cases calls are timed only: what is wrong there is a
    finding."""
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

    def tolerance(self, precision: Precision) -> tuple[float, float] | None:
        """Of `torch.allclose`, for outputs of 32 bits and more, and for others; None where
        `accept_rule` decides."""
        if self.fp32_tolerance is None:
            return None
        if self.by_output:
            return self.fp32_tolerance, self.half_tolerance
        wide = precision in (Precision.FP32, Precision.TF32)
        return (self.fp32_tolerance if wide else self.half_tolerance,) * 2


_KERNELBENCH = Rules(
    inputs="recipe",
    repeats_inputs=False,
    fp32_tolerance=1e-4,
    pytorch_flags=True,
    tries_default_flags=False,
    in_one_process=True,
    rejects=False,
    first_calls=5,
)
RULES: Mapping[Protocol, Rules] = {
    "refinery": Rules(),
    "kernelbench": _KERNELBENCH,
    "kernelbench-x": replace(
        _KERNELBENCH,
        fp32_tolerance=1e-5,
        half_tolerance=5e-3,
        by_output=True,
        one_seed=True,
        sweeps=True,
        first_calls=1,
    ),
    "verified": Rules(
        inputs="scaled",
        repeats_inputs=False,
        fp32_tolerance=1e-3,
        allows_tf32=True,
        tries_default_flags=False,
    ),
}
