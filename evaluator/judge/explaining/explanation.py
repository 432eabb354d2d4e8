"""Why an output is wrong, as far as more calls of the candidate and the reference show.

Nothing here changes the verdict, which stands by then. The first explanation that reproduces the
wrong output, or makes the candidate right, is reported; none is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from evaluator.errors import InfrastructureError
from evaluator.evaluation import Mismatch, Status
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.correctness.comparison import compare
from evaluator.judge.correctness.conditioning import nudged
from evaluator.judge.correctness.mismatch import add_counterfactual, add_race
from evaluator.judge.explaining.counterfactual import find_counterfactual
from evaluator.judge.explaining.reference_modes import depends_on_mode, in_eval
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.problem.reference import flatten_arguments
from evaluator.judge.problem.variation import Kind, kind_of
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.mismatch_pattern import Pattern
from evaluator.reason import Reason
from evaluator.worker.poison import FILL_WORD
from evaluator.worker.steps import FILL_VALUE, Step

_T = TypeVar("_T")
_NEAR = 0.01
_MOST_OF_THE_WRONG = 0.5
_HUGE = 1e9
"""No race makes numbers so large, relative to what they should be."""
_NUDGE = 2.0**-7
"""Far more than the spacing of fp16 or TF32, and that of bf16."""
_ROUNDING = 0.1
"""Share of another error from which on it is rounding: only that of rounded weights stays."""
_TRIES = 2
"""Calls at each address, all with the same result: one may be right by luck."""


@dataclass(frozen=True)
class Explanation:
    """Looks for what explains the wrong outputs of one call.

    context: its reference is in the state in which the candidate was judged.
    runner: the candidate's, alive.
    draw: of the call.
    actual: the call's sealed outputs.
    is_right: whether outputs are right for a draw, by the rule that the verdict follows.
    earlier: draws of earlier calls that were right.
    word: what unwritten memory held in the call; None: not known.
    """

    context: ProblemContext
    runner: ModuleRunner
    draw: Draw
    actual: list[torch.Tensor]
    is_right: Callable[[list[torch.Tensor], Draw], bool]
    earlier: Sequence[Draw]
    word: int | None = None

    def of(self, mismatch: Mismatch) -> Mismatch:
        explained = self._explained(mismatch)
        if not self.runner.unlike:
            return explained
        codes = explained.patterns
        codes = (Pattern.PARAMETERS,) if codes == (Pattern.SCATTERED,) else codes
        details = {**explained.details, "parameters": self.runner.unlike}
        return explained.model_copy(update={"patterns": codes, "details": details})

    def _explained(self, mismatch: Mismatch) -> Mismatch:
        if self.context.sequence is not None:
            # One more call would be one more step, with another result.
            found = self._tried(self._without_state, mismatch.output)
            return mismatch if found is None else add_counterfactual(mismatch, *found)
        races = self._differs_when_repeated()
        # A race is right now and then, by luck.
        address = () if races else (self._earlier_address,)
        changes = (self._changed_reference, self._changed_on_plain_inputs)
        for look in (self._unwritten, *address, self._earlier_result, *changes):
            found = self._tried(look, mismatch.output)
            if found is not None:
                return add_counterfactual(mismatch, *found)
        if not races:
            is_near = Pattern.PRECISION in mismatch.patterns
            share = self._tried(self._rounding_share, mismatch.output) if is_near else None
            if share is None:
                return mismatch
            words = f"with inputs {_NUDGE:.1%} off at most, {share:.0%} of its error is another"
            others = [p for p in mismatch.patterns if p is not Pattern.PRECISION]
            is_rounding = share >= _ROUNDING
            code = Pattern.PRECISION if is_rounding else (*others, Pattern.SCATTERED)[0]
            return add_counterfactual(mismatch, code, words)
        scale = self._tried(self._scale, mismatch.output)
        if scale and mismatch.max_abs_error > _HUGE * scale:
            words = (
                "its results differ from run to run, and are off by up to "
                f"{mismatch.max_abs_error:.0e}: they follow what lay in memory that it has not set"
            )
            return add_counterfactual(mismatch, Pattern.UNWRITTEN, words)
        return add_race(mismatch)

    def _rounding_share(self, output: int) -> float | None:
        work = self.context.work
        unclear = self.context.facts.is_random or work.asserts_values or work.reads_values
        if unclear or self.actual[output].is_complex():
            return None
        generator = torch.Generator(self.context.device)
        values = nudged(self.context.draws.values_of(self.draw), generator, _NUDGE)
        draw = self.context.draws.instead(self.draw, values)
        pairs = ((self.actual, self.draw), (self._outputs(draw), draw))
        one, other = (
            (actual[output].double() - self.context.expected(each)[output]).flatten()
            for actual, each in pairs
        )
        alike = float(2 * (one @ other) / (one @ one + other @ other))
        return 1 - max(0.0, alike) if alike == alike else None

    def _tried(self, look: Callable[[int], _T | None], output: int) -> _T | None:
        """What a look finds; None where it fails, too."""
        try:
            return look(output)
        except (Rejection, InfrastructureError, torch.OutOfMemoryError):
            # Words are not worth more than the verdict, which stands already.
            return None

    def _scale(self, output: int) -> float:
        return float(self.context.expected(self.draw)[output].double().square().mean().sqrt())

    def _without_state(self, output: int) -> tuple[Pattern, str] | None:
        if not self._close(self.actual, self.context.first_outputs(self.draw), self.draw):
            return None
        words = (
            "it is what the reference gives in a first call with these inputs: the reference "
            "keeps a state from call to call, and it does not"
        )
        return Pattern.STATE_NOT_KEPT, words

    def _differs_when_repeated(self) -> bool:
        try:
            again = self._outputs(self.draw)
        except Rejection:
            # It fails, or returns another shape: the verdict on the first call stands.
            return True
        return not self._close(again, self.actual, self.draw)

    def _changed_reference(self, output: int) -> tuple[Pattern, str] | None:
        if self.context.facts.is_random:
            return None
        work, found = self.context.work, None
        # With other values than its own such a reference may end the judge, or never return.
        if not (work.asserts_values or work.reads_values):
            found = find_counterfactual(
                self.context.reference,
                self.context.draws.values_of(self.draw),
                self.actual[output],
                output,
            )
        if found is None:
            return self._eval_alone()
        return found.code, f"in the reference, {found.words}"

    def _changed_on_plain_inputs(self, output: int) -> tuple[Pattern, str] | None:
        if kind_of(self.draw.seed) is Kind.PLAIN:
            return None
        draw = self.context.draws.at(self.draw)
        actual = self._outputs(draw)
        if self.is_right(actual, draw):
            return None
        return replace(self, draw=draw, actual=actual)._changed_reference(output)

    def _unwritten(self, output: int) -> tuple[Pattern, str] | None:
        # In the first such call the allocator may still prefer blocks that were free before.
        self._outputs(self.draw, "fill")
        more = self._outputs(self.draw, "fill")
        # A fill shows in numbers, and not in indices that follow it.
        if not more[output].is_floating_point() or self._close(more, self.actual, self.draw):
            return None
        dtype, got = more[output].dtype, more[output].double()
        expected = self.context.expected(self.draw)[output].to(got.device).double()
        near = _NEAR * expected.square().mean().sqrt() + torch.finfo(dtype).eps * FILL_VALUE
        if not bool(torch.isfinite(near)):
            return None
        most = max(1, int(((got - expected).abs() > near).sum())) * _MOST_OF_THE_WRONG
        if int(((got - FILL_VALUE - expected).abs() <= near).sum()) >= most:
            is_seen = float(expected.abs().mean()) > torch.finfo(dtype).eps * FILL_VALUE
            words = "it adds to memory that it has not set to zero"
            return Pattern.UNWRITTEN, words if is_seen else f"{words}, or does not write it at all"
        kept = int((got == FILL_VALUE).sum())
        if kept >= most:
            return Pattern.UNWRITTEN, f"{kept} of its values, at least, are never written"
        # What differs by chance differs once more, or is right now and then.
        again, before = (
            outputs[output].to(got.device).double()
            for outputs in (self._outputs(self.draw, "fill"), self.actual)
        )
        if self.is_right(more, self.draw):
            if not bool(((again - got).abs() <= near).all()) or self._differs_when_repeated():
                return None
        else:
            follows = ((again - got).abs() <= near) & ~((before - got).abs() <= near)
            if int((follows & ((got - expected).abs() > near)).sum()) < most:
                return None
        return Pattern.UNWRITTEN, "its results follow what lay in memory that it has not set"

    def _earlier_address(self, output: int) -> tuple[Pattern, str] | None:
        for draw in self.earlier:
            # One after the other: both lie in the same memory.
            if (
                (draw.start, draw.at_end) != (self.draw.start, self.draw.at_end)
                and all(self._is_right_at(draw) for _ in range(_TRIES))
                and not any(self._is_right_at(self.draw) for _ in range(_TRIES))
            ):
                words = (
                    "its results are right where the inputs lie at the address of an earlier call, "
                    "and wrong elsewhere: it keeps that address, as a captured graph does"
                )
                return Pattern.STALE_ADDRESS, words
        return None

    def _earlier_result(self, output: int) -> tuple[Pattern, str] | None:
        for number, draw in enumerate(reversed(self.earlier), 1):
            if self.is_right(self.actual, draw):
                words = f"it is the right result of the verified call {number} before this one"
                return Pattern.EARLIER_RESULT, words
        return None

    def _eval_alone(self) -> tuple[Pattern, str] | None:
        model = self.context.reference.model
        if not depends_on_mode(model):
            return None
        draw = self.context.draws.at(self.draw)
        # Its wrong calls may have moved its running statistics.
        self.runner.construct_again()
        got = self._outputs(draw, "eval")
        with in_eval(list(model.modules())):
            expected = self.context.expected(draw)
        if not self._close(got, expected, draw):
            return None
        return Pattern.EVAL_MODE, "in eval(), it is right"

    def _is_right_at(self, earlier: Draw) -> bool:
        draw = self.context.draws.at(earlier)
        return self.is_right(self._outputs(draw), draw)

    def _outputs(self, draw: Draw, step: Step | None = None) -> list[torch.Tensor]:
        word = FILL_WORD if step == "fill" else self.word
        steps = () if step is None else (step,)
        reference, count = self.runner.has_reference, len(self.context.facts.outputs)
        with self.context.calling(
            self.runner, draw, steps=steps, word=word, reference=reference
        ) as call:
            expected = self.context.facts.outputs * (1 + reference)
            outputs = self.runner.outputs(call.reply, expected)[:count]
        if any(tensor.is_meta for tensor in outputs):
            raise Rejection(
                Status.INCORRECT, Reason.WRONG_SHAPE, "another shape or dtype than before"
            )
        return outputs

    def _close(self, some: list[torch.Tensor], others: list[torch.Tensor], draw: Draw) -> bool:
        """By the rule, without an fp64 reference."""
        values: list[Any] = self.context.draws.values_of(draw)
        return compare(
            some,
            [tensor.to(self.context.device) for tensor in others],
            None,
            inputs=flatten_arguments(values),
            precision=self.context.settings.precision,
            tolerance=self.context.rules.tolerance(self.context.settings.precision),
            thresholds=self.context.reference.problem.thresholds,
            accumulation=self.context.work.accumulation,
            describing=False,
        ).ok
