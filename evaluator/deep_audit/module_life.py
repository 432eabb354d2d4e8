"""What a program does with a module beyond calling it: is a candidate still right afterwards?

Each trial begins with a module that has just been constructed and ends with outputs that the judge
compares with the reference's, as in any judged call. What is found is reported and decides nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import closing

import torch

from evaluator.audit_record import Life, LifeTrial
from evaluator.builder.builder import Builder
from evaluator.errors import InfrastructureError
from evaluator.evaluation import Candidate, EvaluationRequest, Status
from evaluator.judge.blockwise import same
from evaluator.judge.builds.build_allowance import BuildAllowance
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.evaluation_run import EvaluationRun
from evaluator.judge.explaining.reference_modes import in_eval
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.rejection import Rejection
from evaluator.judge.verification import SealedOutputs
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.reason import Reason
from evaluator.worker.steps import Result, Step


def module_life(
    context: ProblemContext,
    builder: Builder,
    request: EvaluationRequest,
    known: tuple[LifeTrial, ...] = (),
    *,
    as_constructed: bool,
) -> Generator[LifeTrial]:
    """Try all of `Life` but what is known on a correct candidate. The device must be held.

    `as_constructed`: it was judged with equal seeds and not with copied weights.
    """
    if context.sequence is not None:
        yield from not_tried("the reference keeps a state from call to call")[len(known) :]
        return
    builds = BuildAllowance(builder, request.settings.build_timeout_s)
    lives = _Lives(context, builds, request.candidate, as_constructed=as_constructed)
    with closing(lives):
        yield from (lives.tried(life) for life in [*Life][len(known) :])


def not_tried(why: str) -> tuple[LifeTrial, ...]:
    return tuple(LifeTrial(life=life, outcome="not_tried", note=why) for life in Life)


class _NotTriedError(Exception):
    """This trial would say nothing of this candidate."""


class _Lives:
    def __init__(
        self,
        context: ProblemContext,
        builds: BuildAllowance,
        candidate: Candidate,
        *,
        as_constructed: bool,
    ) -> None:
        self._context = context
        self._builds = builds
        self._candidate = candidate
        self._trial: EvaluationRun | None = None
        self._again: Callable[[ModuleRunner], object] | None = None
        self._as_constructed = as_constructed

    def tried(self, life: Life) -> LifeTrial:
        trials: dict[Life, Callable[[ModuleRunner], Iterator[str]]] = {
            Life.RESULT_KEPT: self._result_kept,
            Life.MOVED: self._moved,
            Life.MODE: self._mode,
            Life.STATE_DICT: self._state_dict,
            Life.INSTANCES: self._instances,
        }
        try:
            runner = self._fresh()
            broken = next(trials[life](runner), None)
        except Rejection as rejection:
            self.close()
            return LifeTrial(life=life, outcome="broken", note=rejection.message.partition("\n")[0])
        except (_NotTriedError, InfrastructureError, RuntimeError) as error:
            self.close()
            return LifeTrial(life=life, outcome="not_tried", note=str(error).partition("\n")[0])
        if broken is not None:
            return LifeTrial(life=life, outcome="broken", note=broken)
        return LifeTrial(life=life, outcome="holds")

    def _fresh(self) -> ModuleRunner:
        if self._trial is None:
            trial = EvaluationRun(self._candidate, self._builds, self._context)
            try:
                runner = self._context.workers.new()
                trial.first_calls(runner, as_constructed=self._as_constructed)
            except (Rejection, InfrastructureError) as error:
                if trial.runner is not None:
                    trial.runner.close()
                if isinstance(error, Rejection):
                    message = f"judged once more, it is refused: {error.message}"
                    raise _NotTriedError(message) from None
                raise
            assert trial.runner is not None
            self._trial = trial
            self._again = trial.runner.construct_on
            self._as_constructed = trial.runner.fit == "seeded"
        assert self._trial.runner is not None and self._again is not None
        self._trial.runner.construct_on = self._again
        self._trial.runner.construct_again()
        return self._trial.runner

    def close(self) -> None:
        if self._trial is not None and self._trial.runner is not None:
            self._trial.runner.close()
        self._trial = None

    def _result_kept(self, runner: ModuleRunner) -> Iterator[str]:
        if self._context.facts.borrowed.inputs:
            raise _NotTriedError("its results are views of its inputs")
        first = self._outputs(runner, self._context.draws.plain(), result="keep")
        later = self._outputs(runner, self._context.draws.plain(), result="kept")
        if not all(map(same, first, later)):
            yield "the next call overwrites its result"

    def _moved(self, runner: ModuleRunner) -> Iterator[str]:
        self._called(runner)
        if not self._is_right_after(runner, "to"):
            yield "it is wrong after to(), where it is already"
        if not self._is_right_after(runner, "away"):
            yield "it is wrong after to() to another place and back"

    def _mode(self, runner: ModuleRunner) -> Iterator[str]:
        model, draw = self._context.reference.model, self._context.draws.plain()
        # Before any call in train mode: such calls move the running statistics of a norm.
        outputs = self._outputs(runner, draw, "eval")
        with in_eval(list(model.modules())):
            right = self._is_right(runner, draw, outputs)
        if not right:
            yield "it is wrong in eval()"
        trains = all(module.training for module in model.modules())
        if trains and not self._is_right_after(runner, "train"):
            yield "it is wrong after eval() and train()"

    def _state_dict(self, runner: ModuleRunner) -> Iterator[str]:
        if self._as_constructed:
            # Another instance from the same seed has the same state before it is loaded.
            raise _NotTriedError("it is judged as constructed from a seed")
        self._called(runner)
        Construction(self._context.setup, {}, earlier="loaded").on(runner)
        if not self._is_right_after(runner):
            yield "another instance that its state_dict() is loaded into gives other results"

    def _instances(self, runner: ModuleRunner) -> Iterator[str]:
        self._called(runner)
        reference = self._context.reference
        weights = {name: tensor.clone() for name, tensor in reference.state().items()}
        try:
            if self._as_constructed:
                seed = secrets.randbits(62)
                reference.construct(seed)
                Construction(self._context.setup, {}, seed=seed, earlier="kept").on(runner)
            else:
                reference.randomise(secrets.randbits(62))
                Construction(self._context.setup, reference.state(), earlier="kept").on(runner)
            self._context.setup.give_memory_back()
            if not self._is_right_after(runner):
                yield "a second instance, with other weights, is wrong"
        finally:
            assert self._trial is not None
            if self._trial.seed is not None:
                reference.construct(self._trial.seed)
            elif self._as_constructed:
                reference.construct_publicly()
            reference.set_state(weights)
            self._context.setup.give_memory_back()
        if not self._is_right_after(runner, "other"):
            yield "the first instance is wrong once a second one, with other weights, was called"

    def _called(self, runner: ModuleRunner) -> None:
        self._outputs(runner, self._context.draws.plain())

    def _is_right_after(self, runner: ModuleRunner, *steps: Step) -> bool:
        draw = self._context.draws.plain()
        return self._is_right(runner, draw, self._outputs(runner, draw, *steps))

    def _outputs(
        self, runner: ModuleRunner, draw: Draw, *steps: Step, result: Result = "new"
    ) -> list[torch.Tensor]:
        with self._context.calling(runner, draw, steps=steps, result=result) as call:
            if result == "new":
                outputs = self._context.sealed_outputs(runner, call.reply, draw)
            else:
                outputs = runner.outputs(call.reply, self._context.facts.outputs)
        if any(tensor.is_meta for tensor in outputs):
            raise Rejection(
                Status.INCORRECT, Reason.WRONG_SHAPE, "its result has another shape or dtype"
            )
        return outputs

    def _is_right(self, runner: ModuleRunner, draw: Draw, outputs: list[torch.Tensor]) -> bool:
        assert self._trial is not None
        return self._trial.verified.is_right(SealedOutputs(self._context, runner, draw, outputs))
