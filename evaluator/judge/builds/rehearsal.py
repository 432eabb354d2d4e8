"""A candidate's import, construction and first call without its device, to find its builds.

The builds that they ask for are in the cache when the candidate gets its device. Nothing else that
happens here counts, because a device may make a difference. One exception is a limit that the
candidate runs into: the verdict follows at once, so that no device is held for it. An import that
takes a minute on one thread might be faster with a device. The verdict says what it was, and an
identical candidate gets another try (`Evaluation.is_lasting`).
"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import astuple

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.builder.builder import Builder
from evaluator.errors import UnusableReferenceError
from evaluator.evaluation import Evaluation, EvaluationRequest, Seconds
from evaluator.hardware.conditions import conditions
from evaluator.hardware.devices import DeviceInfo
from evaluator.judge.builds.build_allowance import BuildAllowance
from evaluator.judge.builds.built_ahead import BuiltAhead
from evaluator.judge.builds.written_builds import written_builds
from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.mapped_arguments import lay
from evaluator.judge.inputs.placement import Placement, bytes_needed
from evaluator.judge.problem.problem_file import ProblemFile, configurations_of
from evaluator.judge.problem.reference import DTYPES, WEIGHT_SEED
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.process import WorkerProcess
from evaluator.reason import Reason
from evaluator.walls.demands import insist
from evaluator.worker.orders import ConstructOrder, LoadOrder
from evaluator.worker.stated_gpu import properties_of
from evaluator.worker.values import dtype_name

_CPU, _META = torch.device("cpu"), torch.device("meta")
_PATIENCE_S = 10.0
"""For construction and the call each, builds not counted."""
_SLACK_BYTES = 2**20
_FINAL = {Reason.IMPORT_TIMEOUT, Reason.BUILD_TIMEOUT, Reason.TOO_MANY_BUILDS}
NOTE = "refused before its turn on the device: it had run into a limit without one"


class Rehearsal:
    """One candidate in a worker that has no device and has run nothing yet."""

    def __init__(
        self,
        request: EvaluationRequest,
        builder: Builder,
        device: DeviceInfo,
        worker: WorkerProcess,
    ) -> None:
        """`device`: the one that the candidate will be judged on. Of a GPU the worker can tell
        what it is, since candidates choose flags by that."""
        self._request = request
        self._builder = builder
        self._device = device
        self._builds = BuildAllowance(builder, request.settings.build_timeout_s)
        self._runner = ModuleRunner(worker, _CPU, request.settings.call_timeout_s)
        self._begin = time.monotonic()

    def run(self) -> BuiltAhead:
        """Have the candidate ask for its builds, and end the worker. Raises `IsolationError`."""
        refused = None
        try:
            if self._request.settings.isolation == "strict":
                insist(self._runner.worker.isolation, self._builder.isolation)
            self._import()
            self._further_steps()
        except Rejection as rejection:
            print(f"{rejection.reason}: {rejection.message}", file=sys.stderr)
            late = self._runner.build is not None and self._runner.build.timed_out
            if late or rejection.reason in _FINAL:
                refused = self._rejected(rejection)
        except UnusableReferenceError as error:
            # The judge meets it as well, and reports it.
            print(error, file=sys.stderr)
        finally:
            self._runner.close()
        return BuiltAhead(seconds=self._builds.seconds, cached=self._builds.cached, refused=refused)

    def _import(self) -> None:
        order = LoadOrder(
            self._request.candidate.source,
            "ModelNew",
            threads=1,
            dtype=dtype_name(DTYPES[self._request.settings.precision]),
            flags=astuple(BackendFlags.of_pytorch()),
            text="lines",
            configurations=configurations_of(self._request.reference),
            gpu=properties_of(self._device) if self._device.kind == "cuda" else None,
        )
        self._runner.load(order, self._builds.build)
        self._runner.loaded(self._request.settings.import_timeout_s)

    def _further_steps(self) -> None:
        """Construct and call the module, as far as its text speaks of more builds than were asked
        for: most candidates build all at import."""
        written = written_builds(self._request.candidate.source)
        if self._builds.asked >= written:
            return
        problem = ProblemFile(self._request.reference)
        self._construct(problem)
        if self._builds.asked < written:
            self._call(problem)

    def _construct(self, problem: ProblemFile) -> None:
        values = problem.initial_arguments()
        weights = make_arena(_CPU, bytes_needed(values) + _SLACK_BYTES, read_only_for_others=True)
        inputs = make_arena(_CPU, _SLACK_BYTES, read_only_for_others=True)
        try:
            placement = Placement(weights.bytes)
            arguments = [placement.place(value) for value in values]
            order = ConstructOrder(WEIGHT_SEED, arguments, _SLACK_BYTES, tensors={})
            self._runner.construct(order, weights, inputs)
            self._runner.constructed(_PATIENCE_S)
        finally:
            weights.close()
            inputs.close()

    def _call(self, problem: ProblemFile) -> None:
        """On tensors without values: they take neither memory nor time, whatever their sizes."""
        values = problem.inputs(_META, DTYPES[self._request.settings.precision])
        laid = lay(Placement(torch.zeros(_SLACK_BYTES, dtype=torch.uint8)), values)
        with self._runner.call(laid, timeout_s=_PATIENCE_S):
            pass

    def _rejected(self, rejection: Rejection) -> Evaluation:
        runner, builds = self._runner, self._builds
        return Evaluation(
            status=rejection.status,
            reason=rejection.reason,
            message=rejection.message,
            detail=rejection.detail,
            build=runner.build,
            isolation=(
                *runner.worker.isolation,
                *(self._builder.isolation if runner.build is not None else ()),
            ),
            device=self._device.name,
            # No device was in use: what state it is in says nothing of this candidate.
            conditions=conditions("cpu")
            | {
                "judged_on": None,
                "threads": 1,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            notes=(NOTE,),
            seconds=Seconds(
                build=builds.seconds, judge=time.monotonic() - self._begin - builds.seconds
            ),
        )
