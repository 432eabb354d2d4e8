"""What the judge does for a problem before a model is billed for it: it sets the problem up, and
measures what PyTorch itself reaches."""

from __future__ import annotations

import threading
from typing import Literal

from agent.loop.judging import Profiler
from agent.record.rival import Rival, RivalKernel
from agent.record.store import RunStore
from evaluator.errors import InfrastructureError, UnusableReferenceError
from evaluator.evaluation import Backend, Candidate, EvaluationRequest, ProblemRequest
from evaluator.executor.executor import Executor
from evaluator.settings import BaselineName, Settings
from problems.problem import Problem
from tools.execute import own_module


class ProblemCheck:
    """The check of one problem. It passes once a command; safe to call from several threads."""

    def __init__(self, executor: Executor, problem: Problem, settings: Settings) -> None:
        self._executor = executor
        self._request = ProblemRequest.of(problem, settings)
        self._lock = threading.Lock()
        self._passed = False
        self._unusable: UnusableReferenceError | None = None

    def run(self) -> None:
        """Have the judge set the problem up and call its reference, unless it did so already.

        Raises `InfrastructureError`. A reference that cannot run is not tried again; any other
        failure may pass, and the next call tries again.
        """
        with self._lock:
            if self._unusable is not None:
                raise self._unusable
            if self._passed:
                return
            try:
                self._executor.check(self._request)
            except UnusableReferenceError as error:
                self._unusable = error
                raise
            self._passed = True


class RivalMeasurement:
    """Of one problem, whose own module is judged and profiled as if it were a candidate. It is made
    once a run; safe to call from several threads."""

    def __init__(
        self,
        asked: Literal["none", "eager", "compile"],
        request: ProblemRequest,
        backend: Backend,
        executor: Executor,
        profiler: Profiler,
        store: RunStore,
    ) -> None:
        """`asked`: what `--rival` says. `request`: how the problem is judged in this run."""
        names = [BaselineName.EAGER, *([BaselineName.COMPILE] if asked == "compile" else [])]
        update = {"baselines": tuple(names), "audit": "never", "require": "any"}
        self._is_asked = asked != "none"
        self._request = EvaluationRequest(
            **dict(request) | {"settings": request.settings.model_copy(update=update)},
            candidate=Candidate(source=own_module(request.reference), backend=backend),
        )
        self._executor = executor
        self._profiler = profiler
        self._store = store
        self._lock = threading.Lock()
        self._found: Rival | None = None

    def get(self) -> Rival | None:
        """What was measured, now or by an earlier command; None where nothing is asked for.

        Raises `InfrastructureError` where the judge fails.
        """
        if not self._is_asked:
            return None
        with self._lock:
            if self._found is None:
                self._found = self._store.rival(self._request.problem_id)
            if self._found is None:
                self._found = self._measured()
                self._store.save_rival(self._request.problem_id, self._found)
            return self._found

    def _measured(self) -> Rival:
        evaluation = self._executor.evaluate(self._request)
        timing = evaluation.timing
        if timing is None:
            return Rival(notes=(f"the problem's own module is {evaluation.status}",))
        notes = list(evaluation.notes)
        kernels: tuple[RivalKernel, ...] = ()
        try:
            profile = self._profiler(self._request, evaluation)
        except InfrastructureError as error:
            notes.append(f"no profile of eager: {error}")
        else:
            kernels = tuple(
                RivalKernel(name=k.name, launches=k.launches, time_us=k.time_us, share=k.share)
                for k in profile.kernels
            )
        eager = timing.baselines[BaselineName.EAGER]
        compiled = timing.baselines.get(BaselineName.COMPILE)
        return Rival(
            eager_us=eager.latency_us,
            flags=eager.flags,
            compile_us=compiled.latency_us if compiled else None,
            bound_us=timing.bound_us,
            bound_rates=timing.bound_rates,
            attainable_us=timing.attainable_us,
            kernels=kernels,
            notes=tuple(notes),
        )
