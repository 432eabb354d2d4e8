"""After a crash: was it because the candidate wrote into its inputs?"""

from __future__ import annotations

import torch

from evaluator.builder.handover import Build
from evaluator.errors import DeviceError
from evaluator.evaluation import Backend, Candidate, Status
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.inputs.placement import Placement
from evaluator.judge.rejection import Rejection
from evaluator.reason import Reason

WRITES_TO_INPUTS = "forward writes into its inputs, which are not its own"


def rejected_as_writing(
    context: ProblemContext, candidate: Candidate, draw: Draw, build: Build, crash: Rejection
) -> Rejection | None:
    """Why a candidate whose call ended in this way is refused, if it wrote into its inputs."""
    # A write to memory that is mapped read-only ends in one of these.
    report = crash.message + crash.detail
    is_fault = crash.reason in (Reason.SEGFAULT, Reason.SIGBUS) or "illegal memory access" in report
    if not is_fault or context.reference.changes_inputs:
        return None
    if not _wrote_to_inputs(context, candidate, draw, build):
        return None
    return Rejection(
        Status.INTEGRITY, Reason.INPUT_MODIFIED, WRITES_TO_INPUTS, detail=crash.message
    )


def _wrote_to_inputs(
    context: ProblemContext, candidate: Candidate, draw: Draw, build: Build
) -> bool:
    """Call the candidate once more, in a fresh worker, on inputs that it may write to.

    Read-only inputs end a worker that writes to them, but a crash alone does not say why. The
    judge compares its own bytes before and after, so nothing rests on what the worker says.
    """
    arena = make_arena(context.device, context.draws.arena.size, read_only_for_others=False)
    placed = Placement(torch.empty_like(arena.bytes))
    order = MappedArguments(arena.bytes, placed, context.draws.values_of(draw))
    order.lay()
    runner = context.workers.new()
    try:
        triton = candidate.backend is Backend.TRITON
        try:
            context.workers.load(runner, candidate.source, "ModelNew", triton=triton, build=build)
            Construction(context.setup, context.reference.state(), inputs=arena).on(runner)
            with runner.call(order):
                pass
        except (Rejection, DeviceError):
            # It may well crash again: what counts is what it left behind.
            pass
        return any(
            not torch.equal(arena.bytes[first:][:size], placed.memory[first:][:size])
            for first, size in placed.spans
        )
    finally:
        runner.close()
        del order
        arena.close()
