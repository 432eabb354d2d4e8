"""A candidate's import without its device, to find its builds.

What it builds is in the cache when the candidate gets its device. One that builds nothing at import
is constructed as well; what is built in its calls is left to the judge. Nothing else here counts,
because a device may make a difference. One exception is a limit that the candidate runs into: the
verdict follows at once, so that no device is held for it. An import that takes a minute on one
thread might be faster with a device. The verdict says what it was, and an identical candidate gets
another try (`Evaluation.is_lasting`).
"""

from __future__ import annotations

import sys
import time
from contextlib import closing, suppress
from dataclasses import astuple

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.builder.builder import Builder
from evaluator.errors import UnusableReferenceError
from evaluator.evaluation import EvaluationRequest, Seconds
from evaluator.hardware.devices import DeviceInfo
from evaluator.judge.builds.build_allowance import BuildAllowance
from evaluator.judge.builds.built_ahead import BuiltAhead, refused_early
from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.placement import Placement, bytes_needed
from evaluator.judge.problem.problem_file import ProblemFile
from evaluator.judge.problem.reference import DTYPES, WEIGHT_SEED
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.process import WorkerProcess
from evaluator.reason import Reason
from evaluator.walls.demands import insist
from evaluator.worker.orders import ConstructOrder, LoadOrder
from evaluator.worker.stated_gpu import properties_of
from evaluator.worker.values import dtype_name

_FINAL = {Reason.IMPORT_TIMEOUT, Reason.BUILD_TIMEOUT, Reason.TOO_MANY_BUILDS}
_SLACK_BYTES = 2**20
NOTE = "refused before its turn on the device: it had run into a limit without one"


def rehearse(
    request: EvaluationRequest, builder: Builder, device: DeviceInfo, worker: WorkerProcess
) -> BuiltAhead:
    """Have the candidate ask for its builds, and end the worker, which has no device and has run
    nothing yet. Raises `IsolationError`.

    `device`: the one that the candidate will be judged on. Of a GPU the worker can tell what it is,
    since candidates choose flags by that.
    """
    begin = time.monotonic()
    settings = request.settings
    builds = BuildAllowance(builder, settings.build_timeout_s)
    runner = ModuleRunner(worker, torch.device("cpu"), settings.call_timeout_s)
    order = LoadOrder(
        request.candidate.source,
        "ModelNew",
        threads=1,
        dtype=dtype_name(DTYPES[settings.precision]),
        flags=astuple(BackendFlags.of_pytorch()),
        text="lines",
        gpu=properties_of(device) if device.kind == "cuda" else None,
    )
    refused = None
    try:
        if settings.isolation == "strict":
            insist(worker.isolation, builder.isolation)
        runner.load(order, builds.build)
        runner.loaded(settings.import_timeout_s)
        if not builds.asked:
            with suppress(UnusableReferenceError, torch.OutOfMemoryError):
                _construct(runner, ProblemFile(request.reference), settings.import_timeout_s)
    except Rejection as rejection:
        print(f"{rejection.reason}: {rejection.message}", file=sys.stderr)
        late = runner.build is not None and runner.build.timed_out
        if late or rejection.reason in _FINAL:
            compilers = builder.isolation if runner.build is not None else ()
            refused = refused_early(
                rejection,
                device.name,
                NOTE,
                build=runner.build,
                isolation=(*worker.isolation, *compilers),
                seconds=Seconds(
                    build=builds.seconds, judge=time.monotonic() - begin - builds.seconds
                ),
            )
    finally:
        runner.close()
    return BuiltAhead(seconds=builds.seconds, cached=builds.cached, refused=refused)


def _construct(runner: ModuleRunner, problem: ProblemFile, timeout_s: float) -> None:
    arguments = problem.initial_arguments()
    size = bytes_needed(arguments) + _SLACK_BYTES
    with closing(make_arena(torch.device("cpu"), size, read_only_for_others=True)) as arena:
        placement = Placement(arena.bytes)
        placed = [placement.place(value) for value in arguments]
        runner.construct(ConstructOrder(WEIGHT_SEED, placed, _SLACK_BYTES, {}, []), arena, arena)
        runner.constructed(timeout_s)
