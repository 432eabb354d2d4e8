"""The accept rule: is what the candidate returned what an honest implementation would return?

K is the candidate's output, L the reference in the task's precision, R the reference in fp64, u the
unit round-off (half of machine epsilon) of the output's dtype or of the task's precision, whichever
is coarser, n the length of the longest accumulation. With `floor(x) = x (b u + 2^-24 sqrt(n))`:

1. number of outputs, shapes and dtypes are exactly those of L;
2. NaN and infinity stand exactly where R (rounded to the output's dtype) or L has them;
3. RMSE(K-R) <= max(m RMSE(L-R), floor(rms(R))) over the whole output;
4. the same with four times the room over every row and every column, so that a wrong slice is
   found however small its values are beside the others;
5. |K_i-R_i| <= 2m max|L-R| + 8 floor(rms(R)) + r |R_i| within each row and every column, so that
   no single element may be wrong.

m is 32 for fp32, 4 for tf32 (bf16 inputs have 8 times the error of tf32 ones), 2 for 16 bits; b is
4, 2 and 1/2. m RMSE(L-R) may not exceed 2^-9 rms(R) (fp32), unless twice L's own error does: a bad
reference buys no slack. Noise of L that does not follow the scale of its rows is added to 4 and 5
(`comparison.py`). Integers and booleans are exact, except where two values tie. Figures and
the cases behind them: `docs/correctness.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from evaluator.settings import Precision

FP32_ROUND_OFF = 2.0**-24
TF32_ROUND_OFF = 2.0**-11
FP64_ROUND_OFF = 2.0**-40
"""Of outputs in fp64, which R is no better than: far from fp64's own, and from a kernel in fp32."""
LONGEST_ACCUMULATION = 2**17
"""An accumulator that runs on for longer than this without partial sums is not excused."""


@dataclass(frozen=True)
class Rule:
    """The accept rule for one output, figures filled in."""

    multiple: float
    """m: how many times the reference's own error is allowed."""
    round_off: float
    base: float
    """b: the floor in units of the round-off."""
    accumulation: int
    """n."""
    ceiling: float
    """Largest RMSE relative to rms(R) that the reference's error can buy."""
    assumed_error: float | None = None
    """L's error relative to R, of each element, where L itself stands in for R."""

    @property
    def floor(self) -> float:
        """The relative error that is always allowed."""
        each = min(FP32_ROUND_OFF, self.round_off)
        return self.base * self.round_off + each * math.sqrt(self.accumulation)

    @property
    def element(self) -> float:
        """r: the part of an element's own magnitude that it may be off."""
        return 4 * self.floor

    @property
    def most(self) -> float:
        """The RMSE relative to rms(R) that no reference within the ceiling ever allows.

        A thousandth more than `allowed` comes to, which rounds.
        """
        return 1.001 * max(2 * self.ceiling, self.floor)

    def allowed(self, reference_error: Tensor, rms: Tensor) -> Tensor:
        """The RMSE that is allowed where the reference has this RMSE and R this rms."""
        capped = torch.minimum(
            self.multiple * reference_error,
            torch.maximum(2 * reference_error, self.ceiling * rms),
        )
        return torch.maximum(capped, self.floor * rms)


def rule(
    precision: Precision, dtype: torch.dtype, numel: int, accumulation: int, assumed: bool = False
) -> Rule:
    """The rule for an output of this dtype with `numel` elements.

    `assumed`: there is no fp64 reference, so L stands in for R and its own error, which is then
    unknown, is added to the floor as half a round-off per operation.
    """
    own = torch.finfo(dtype).eps / 2
    task = {
        Precision.FP32: FP32_ROUND_OFF,
        Precision.TF32: TF32_ROUND_OFF,
        Precision.FP16: 2.0**-11,
        Precision.BF16: 2.0**-8,
    }[precision]
    half = precision in (Precision.FP16, Precision.BF16) or own >= 2.0**-11
    round_off = FP64_ROUND_OFF if own < FP32_ROUND_OFF else max(own, task)
    if half:
        # One rounding is off by 0.4 u on average and by 1 u at most: few elements need the latter.
        multiple, base, ceiling = 2.0, 0.5 + 0.5 / math.sqrt(max(numel, 1)), 1.0
    elif precision is Precision.TF32:
        multiple, base, ceiling = 4.0, 2.0, 2.0**-5
    else:
        multiple, base, ceiling = 32.0, 4.0, 2.0**-9
    if assumed:
        base += multiple / 2
    return Rule(
        multiple=multiple,
        round_off=round_off,
        base=base,
        accumulation=max(1, min(accumulation, LONGEST_ACCUMULATION)),
        ceiling=ceiling,
    )
