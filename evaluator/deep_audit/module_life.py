"""What a program does with a module beyond calling it: is a candidate still right afterwards?

Each trial begins with a module that has just been constructed and ends with outputs that the judge
compares with the reference's, as in any judged call. What is found is reported and decides nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import torch

from evaluator.build.builder import Builder
from evaluator.deep_audit.record import Life, LifeTrial
from evaluator.evaluation import Candidate, EvaluationRequest
from evaluator.judge.bench import Bench
from evaluator.judge.blockwise import same
from evaluator.judge.build_allowance import BuildAllowance
from evaluator.judge.draws import Draw
from evaluator.judge.out_of_memory import is_out_of_memory
from evaluator.judge.reference_modes import in_eval
from evaluator.judge.refusal import Refusal
from evaluator.judge.side import Side
from evaluator.judge.trial import Trial
from evaluator.worker.steps import Result, Step


def module_life(
    bench: Bench, builder: Builder, request: EvaluationRequest
) -> tuple[LifeTrial, ...]:
    """Try all of `Life` on a correct candidate. The device must be held."""
    if bench.sequence is not None:
        note = "the reference keeps a state from call to call"
        return tuple(LifeTrial(life=life, outcome="not_tried", note=note) for life in Life)
    lives = _Lives(bench, BuildAllowance(builder, request.settings.build_timeout_s), request)
    try:
        return tuple(lives.tried(life) for life in Life)
    finally:
        lives.close()


class _Lives:
    def __init__(self, bench: Bench, builds: BuildAllowance, request: EvaluationRequest) -> None:
        self._bench = bench
        self._builds = builds
        self._candidate: Candidate = request.candidate
        self._trial: Trial | None = None
        self._again: Callable[[], object] | None = None
        self._as_constructed = False
        """Judged with equal seeds and not with copied weights."""

    def tried(self, life: Life) -> LifeTrial:
        """One trial, on a module of its own."""
        trials: dict[Life, Callable[[Side], Iterator[str]]] = {
            Life.RESULT_KEPT: self._result_kept,
            Life.MOVED: self._moved,
            Life.MODE: self._mode,
            Life.STATE_DICT: self._state_dict,
            Life.INSTANCES: self._instances,
        }
        try:
            side = self._fresh()
        except Refusal as refusal:
            self.close()
            return LifeTrial(life=life, outcome="not_tried", note=_first_line(refusal))
        try:
            broken = next(trials[life](side), None)
        except (Refusal, torch.OutOfMemoryError) as error:
            self.close()
            note = _first_line(error)
            short = is_out_of_memory(error) or "out of memory" in note
            return LifeTrial(life=life, outcome="not_tried" if short else "broken", note=note)
        if broken is not None:
            return LifeTrial(life=life, outcome="broken", note=broken)
        return LifeTrial(life=life, outcome="holds")

    def _fresh(self) -> Side:
        """The candidate as it was judged, in a worker that still runs or in a new one."""
        if self._trial is None:
            self._trial = Trial(self._candidate, self._builds)
            self._trial.first_calls(self._bench, self._bench.new_side())
            assert self._trial.side is not None
            self._again = self._trial.side.construct_again
            self._as_constructed = self._trial.side.fit == "seeded"
        assert self._trial.side is not None and self._again is not None
        self._trial.side.construct_again = self._again
        self._again()
        return self._trial.side

    def close(self) -> None:
        """End the worker."""
        if self._trial is not None and self._trial.side is not None:
            self._trial.side.close()
        self._trial = None

    def _result_kept(self, side: Side) -> Iterator[str]:
        first = self._outputs(side, self._bench.draws.plain(), result="keep")
        later = self._outputs(side, self._bench.draws.plain(), result="kept")
        if not all(map(same, first, later)):
            yield "the next call overwrites its result"

    def _moved(self, side: Side) -> Iterator[str]:
        self._called(side)
        if not self._is_right_after(side, "to"):
            yield "it is wrong after to(), where it is already"
        if not self._is_right_after(side, "away"):
            yield "it is wrong after to() to another place and back"

    def _mode(self, side: Side) -> Iterator[str]:
        model, draw = self._bench.reference.model, self._bench.draws.plain()
        # Before any call in train mode: such calls move the running statistics of a norm.
        outputs = self._outputs(side, draw, "eval")
        # The fp64 reference is a copy in the mode that the model was in.
        self._bench.give_memory_back()
        with in_eval(model, list(model.modules())):
            right = self._is_right(side, draw, outputs)
        self._bench.give_memory_back()
        if not right:
            yield "it is wrong in eval()"
        if not self._is_right_after(side, "train"):
            yield "it is wrong after eval() and train()"

    def _state_dict(self, side: Side) -> Iterator[str]:
        self._called(side)
        self._bench.construct(side, {}, seed=secrets.randbits(62), earlier="loaded")
        if not self._is_right_after(side):
            yield "another instance that its state_dict() is loaded into gives other results"

    def _instances(self, side: Side) -> Iterator[str]:
        self._called(side)
        reference = self._bench.reference
        weights = {name: tensor.clone() for name, tensor in reference.state().items()}
        try:
            if self._as_constructed:
                seed = secrets.randbits(62)
                reference.construct(seed)
                self._bench.construct(side, {}, seed=seed, earlier="kept")
            else:
                reference.randomise(secrets.randbits(62))
                self._bench.construct(side, reference.state(), earlier="kept")
            self._bench.give_memory_back()
            if not self._is_right_after(side):
                yield "a second instance, with other weights, is wrong"
        finally:
            assert self._trial is not None
            if self._trial.seed is not None:
                reference.construct(self._trial.seed)
            elif self._as_constructed:
                reference.construct_publicly()
            reference.set_state(weights)
            self._bench.give_memory_back()
        if not self._is_right_after(side, "other"):
            yield "the first instance is wrong once a second one, with other weights, was called"

    def _called(self, side: Side) -> None:
        """Let it prepare what it prepares at its first call."""
        self._outputs(side, self._bench.draws.plain())

    def _is_right_after(self, side: Side, *steps: Step) -> bool:
        draw = self._bench.draws.plain()
        return self._is_right(side, draw, self._outputs(side, draw, *steps))

    def _outputs(
        self, side: Side, draw: Draw, *steps: Step, result: Result = "new"
    ) -> list[torch.Tensor]:
        with self._bench.calling(side, draw, steps=steps, result=result) as call:
            return side.outputs(call.reply, self._bench.outputs)

    def _is_right(self, side: Side, draw: Draw, outputs: list[torch.Tensor]) -> bool:
        assert self._trial is not None
        return self._trial.is_right(self._bench, side, outputs, draw)


def _first_line(error: Exception) -> str:
    said = error.message if isinstance(error, Refusal) else str(error)
    return said.partition("\n")[0]
