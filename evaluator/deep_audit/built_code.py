"""A candidate's own code as the trusted builder makes it."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from evaluator.builder.builder import Builder
from evaluator.builder.handover import built_and_read
from evaluator.deep_audit.compiled_text import compiled_texts
from evaluator.deep_audit.own_code import OwnCode, own_code
from evaluator.evaluation import Backend, EvaluationRequest
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.rejection import Rejection


def built_code(
    context: ProblemContext,
    builder: Builder,
    request: EvaluationRequest,
    *,
    limit_s: float | None = None,
) -> OwnCode:
    """Import the candidate once more, and read what is built for it, mostly from the cache.

    `limit_s` bounds it all.
    """
    made: list[Path] = []
    asked: list[BuildRequest] = []
    settings = request.settings
    deadline = None if limit_s is None else time.monotonic() + limit_s

    def build(order: BuildRequest) -> BuildOutcome:
        asked.append(order)
        left_s = settings.build_timeout_s
        if deadline is not None:
            left_s = max(0.01, min(left_s, deadline - time.monotonic()))
        outcome, copy = built_and_read(lambda again: builder.build(again, left_s), order, keep)
        if copy is not None:
            made.append(copy)
        return outcome

    def keep(library: Path) -> Path:
        return Path(shutil.copyfile(library, Path(kept) / f"{len(made)}.so"))

    runner = context.workers.new()
    if deadline is not None:
        runner.end_by(deadline)
    triton = request.candidate.backend is Backend.TRITON
    # The cache may lose a library before its names are read.
    with tempfile.TemporaryDirectory(prefix="refinery-") as kept:
        try:
            context.workers.load(
                runner, request.candidate.source, "ModelNew", triton=triton, build=build
            )
        except Rejection:
            # What was built until now is what there is.
            pass
        finally:
            runner.close()
        return own_code(made, request.candidate.source, compiled_texts(asked))
