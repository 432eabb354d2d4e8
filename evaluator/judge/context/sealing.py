"""What one call of a candidate leaves behind: its outputs, and its inputs where these change."""

from __future__ import annotations

import torch

from evaluator.evaluation import Status
from evaluator.ipc.reply import Reply
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.reason import Reason


def sealed_outputs(
    context: ProblemContext,
    runner: ModuleRunner,
    reply: Reply,
    draw: Draw,
    *,
    reference: bool = False,
) -> list[torch.Tensor]:
    """Copies of a call's outputs, out of the worker's reach; raises `Rejection`.

    Where the reference changes its inputs, the inputs as the call left them come after the outputs,
    as in `ProblemContext.expected`. `reference`: those of the reference beside it come last.
    """
    outputs = runner.outputs(reply, context.facts.outputs * (2 if reference else 1))
    return [*outputs, *context.draws.lying(draw)] if context.facts.compares_inputs else outputs


def rejected_as_borrowed(
    context: ProblemContext, runner: ModuleRunner, reply: Reply
) -> Rejection | None:
    """Why outputs are refused that are views of the inputs, or of each other, where the
    reference's are not. Of the call whose context lasts."""
    borrowed, allowed = runner.borrowed(reply), context.facts.borrowed
    if borrowed.inputs and not allowed.inputs:
        what = "an output is a view of an input"
    elif borrowed.each_other and not allowed.each_other:
        what = "two outputs share memory"
    elif borrowed.itself and not allowed.itself:
        what = "an output is a view with several elements at one address"
    else:
        return None
    message = f"{what}, which the reference's is not; return a copy"
    return Rejection(Status.INTEGRITY, Reason.BORROWED_OUTPUT, message)
