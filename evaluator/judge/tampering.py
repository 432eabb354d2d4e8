"""After a crash: was it because of what the candidate wrote, or where it read?"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator.builder.handover import Build
from evaluator.errors import DeviceError
from evaluator.evaluation import Backend, Candidate, Status
from evaluator.judge.context.baselines import no_build
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.inputs.placement import MARGINS, Placement
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.allowance import Allowance
from evaluator.reason import Reason

WRITES_TO_INPUTS = "forward writes into its inputs, which are not its own"
WRITES_BEYOND = "forward writes to memory beyond the bounds of its inputs"
_NUMBER = MARGINS[1]
"""Unlike NaN it changes when something is computed with it in place."""
_ORDINARY_CALLS = 3
"""A candidate that survives these, and then ends at the end of memory, was ended by that."""


def explained(
    context: ProblemContext, candidate: Candidate, draw: Draw, build: Build, crash: Rejection
) -> Rejection | None:
    """Why a candidate whose call ended in this way is refused, if its inputs have to do with it.

    If the reference itself does not survive inputs that end where memory ends, none lie there
    from now on (`Draws.ends`), and the crash says nothing.
    """
    # An access to memory that is not mapped, or mapped read-only, ends in one of these.
    report = crash.message + crash.detail
    is_fault = crash.reason in (Reason.SEGFAULT, Reason.SIGBUS) or "illegal memory access" in report
    if not is_fault:
        return None
    at_end: list[int | None] = [] if draw.at_end is None else [draw.at_end]
    calls = [None] * _ORDINARY_CALLS + at_end
    returned, modified, overrun = _seen(context, candidate, draw, calls, build)
    if modified and not context.reference.changes_inputs:
        return Rejection(
            Status.INTEGRITY, Reason.INPUT_MODIFIED, WRITES_TO_INPUTS, detail=crash.message
        )
    message = WRITES_BEYOND
    if not overrun:
        if not at_end or returned != _ORDINARY_CALLS:
            return None
        source = f"{context.reference.source}\n\nModelNew = Model\n"
        eager = Candidate(source=source, backend=Backend.CPP)
        survived, _, _ = _seen(context, eager, draw, at_end, no_build)
        if not survived:
            context.draws.ends = 0
            return None
        message = f"forward reads memory beyond the end of input {draw.at_end}"
    return Rejection(Status.RUNTIME_ERROR, Reason.MEMORY_ERROR, message, detail=crash.message)


def _seen(
    context: ProblemContext,
    candidate: Candidate,
    draw: Draw,
    calls: Sequence[int | None],
    build: Build,
) -> tuple[int, bool, bool]:
    """Call a candidate in a fresh worker, on inputs that it may write to: how many calls returned,
    whether inputs were written to, and whether memory around them was.

    Read-only inputs end a worker that writes to them, but a crash alone does not say why. The
    judge compares its own bytes before and after, so nothing rests on what the worker says.
    `calls`: which input lies at the end of memory, in each; None: none does.
    """
    arena = make_arena(context.device, context.draws.arena.size, read_only_for_others=False)
    staging = torch.empty_like(arena.bytes)
    runner = context.workers.new()
    runner.said.allowance = Allowance(limit_s=30.0)
    returned, modified, overrun, order = 0, False, False, None
    try:
        triton = candidate.backend is Backend.TRITON
        context.workers.load(runner, candidate.source, "ModelNew", triton=triton, build=build)
        Construction(context.setup, context.reference.state(), inputs=arena).on(runner)
        for at_end in calls:
            placed = Placement(staging, draw.start, _NUMBER, at_end)
            order = MappedArguments(arena.bytes, placed, context.draws.values_of(draw))
            order.lay()
            try:
                with runner.call(order):
                    returned += 1
            finally:
                modified |= not order.holds()
                overrun |= not order.holds(around=True)
    except (Rejection, DeviceError):
        # It may well crash again: what counts is what it left behind.
        pass
    finally:
        runner.close()
        order = None
        arena.close()
    return returned, modified, overrun
