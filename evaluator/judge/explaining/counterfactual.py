"""Which change of the reference would make a candidate's wrong output right.

A trusted worker searches for it (`counterfactual_search.py`). It has the reference with its
weights, the call's inputs and the candidate's output, and never the candidate. A changed operation
may end the process, because some operators do not check their arguments, or may never end. Then
nothing is reported, and the verdict stands. Each search has its own worker, so that no change
spoils another search.
"""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import astuple
from typing import Any

import torch
from torch import Tensor

from evaluator.backend_flags import BackendFlags
from evaluator.errors import InfrastructureError
from evaluator.judge.context.baselines import no_build
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.explaining.counterfactual_search import ANSWER_BYTES, Counterfactual, read
from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.mapped_arguments import MappedArguments, lay
from evaluator.judge.inputs.placement import Placement, bytes_needed
from evaluator.judge.refusal import Refusal
from evaluator.judge.workers.side import Side
from evaluator.settings import Precision
from evaluator.worker.orders import LoadOrder
from evaluator.worker.values import dtype_name

_CUT_OFF_S = 10.0
"""After which a search that is still under way is ended. It stops by itself after 2 s, but not
within a call of the reference."""
_SLACK_BYTES = 2**16
CLOSE = {
    Precision.FP32: 1e-4,
    Precision.TF32: 1e-2,
    Precision.FP16: 1e-2,
    Precision.BF16: 3e-2,
}
"""RMSE relative to the changed reference's rms, below which an output is what comes out."""
_SEARCH = """

from evaluator.judge.explaining import counterfactual_search as _search


class CounterfactualSearch(_search.CounterfactualSearch):
    kind = Model
"""
"""What follows the reference's source in the worker."""


def find_counterfactual(
    context: ProblemContext, arguments: list[Any], actual: Tensor, output: int
) -> Counterfactual | None:
    """The first change found after which `actual` is right; None where there is none.

    Args:
        context: its reference is in the state in which the candidate was judged.
        arguments: of the call.
        actual: the candidate's sealed output.
        output: which of the reference's outputs it is.
    """
    try:
        return search(context, arguments, actual, output) if _says_something(actual) else None
    except (Refusal, InfrastructureError, torch.OutOfMemoryError):
        # Words are not worth more than the verdict, which stands already.
        return None


def search(
    context: ProblemContext, arguments: list[Any], actual: Tensor, output: int
) -> Counterfactual | None:
    """Have a worker search. Raises `Refusal`, as of a candidate, when the worker dies, raises or is
    cut off, and `InfrastructureError` when there is no worker or no memory to be had."""
    given = [actual, output, CLOSE[context.settings.precision], *arguments]
    state = {f"model.{name}": tensor for name, tensor in context.reference.state().items()}
    size = bytes_needed(given) + _SLACK_BYTES
    with (
        closing(make_arena(context.device, size, read_only_for_others=False)) as arena,
        closing(context.new_side()) as side,
    ):
        side.end_by(time.monotonic() + _CUT_OFF_S)
        order = LoadOrder(
            context.reference.source + _SEARCH,
            "CounterfactualSearch",
            threads=context.threads,
            dtype=dtype_name(context.reference.dtype),
            flags=astuple(BackendFlags()),
            text="lines",
            configurations=context.reference.problem.configurations,
        )
        side.load(order, no_build)
        side.loaded(_CUT_OFF_S)
        Construction(context, state, inputs=arena).on(side)
        return read(_answer(side, lay(Placement(arena.bytes), given)))


def _says_something(actual: Tensor) -> bool:
    """Of one value all over, zeros say all that there is to say."""
    low, high = map(
        float, (torch.view_as_real(actual) if actual.is_complex() else actual).aminmax()
    )
    return math.isfinite(low) and math.isfinite(high) and (low < high or actual.numel() == 1)


def _answer(side: Side, laid: MappedArguments) -> Tensor:
    with side.call(laid, timeout_s=_CUT_OFF_S) as call:
        (answer,) = side.outputs(call.reply, [torch.empty(ANSWER_BYTES, dtype=torch.uint8)])
    return answer
