"""What verifying a candidate's calls showed so far, and the verdict on one more."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import torch

from evaluator.evaluation import Correctness, Mismatch, Status
from evaluator.judge.blockwise import close, same
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.correctness.comparison import OutputVerdict, compare
from evaluator.judge.correctness.conditioning import MULTIPLE, nudged_outputs
from evaluator.judge.explaining.explanation import Explanation
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.problem.exact_reference import Source
from evaluator.judge.problem.reference import flatten_arguments
from evaluator.judge.problem.variation import kind_of
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.reason import Reason
from evaluator.settings import Precision

_WRONG = {
    "count": Reason.WRONG_COUNT,
    "shape": Reason.WRONG_SHAPE,
    "dtype": Reason.WRONG_DTYPE,
    "values": Reason.WRONG_VALUES,
}
"""By what a mismatch is of."""

_KEPT_DRAWS = 2
_LIBRARY = 1e-2
"""KernelBench's tolerance for 16 bits: relative, and absolute, of the output's rms below 1."""
_NEAR, _SLACK = 1 / 3, 2.0
"""Where a call uses more than the first share of what is allowed, calls that are the same each time
decide. Up to the second one they alone do: with secret inputs it would be luck."""
_EXPLAINING_S = 30.0  # for the calls that explain a wrong one, together
_EXACT_SECONDS = 0.02
"""An fp64 reference that takes no longer verifies each call; of one that takes longer, so much is
spent on a call on average."""


@dataclass(frozen=True)
class SealedOutputs:
    """What one call of a worker gave."""

    context: ProblemContext
    runner: ModuleRunner
    draw: Draw
    actual: list[torch.Tensor]
    beside: list[torch.Tensor] | None = None
    """What the reference gave in the candidate's process, if it ran there."""

    def expected(self) -> list[torch.Tensor]:
        """The outputs to compare with: those of the reference in the candidate's process, where
        these may be right. There cuDNN takes the same algorithms for both."""
        expected, beside = self.context.expected(self.draw), self.beside
        return beside if beside is not None and is_near(beside, expected) else expected


_NOTHING = OutputVerdict(True, None, None, None)


@dataclass
class Verification:
    made: int = 0
    """Calls, verified or not."""
    judged: int = 0
    judged_in_fp64: int = 0
    worst: OutputVerdict = _NOTHING
    """Of the call whose error was nearest to its limit, or furthest beyond."""
    source: Source = "fp64"
    thresholds: dict[str, float] = field(default_factory=dict)
    """The task's own, in place of our rule."""
    seeds: list[int] = field(default_factory=list)
    reference_errors: tuple[float | None, ...] | None = None
    """L's own relative error by output, the smallest of all calls that were verified in fp64; None
    where all were zeros."""
    earlier: tuple[Draw, ...] = ()
    """Of the last calls that were verified and right."""
    decides: bool = False
    """These calls decide, so that they may use no more than is allowed."""
    explains: bool = True
    """Whether it is looked for why values are wrong, which takes seconds."""
    stage: Callable[[str], None] = lambda _: None
    """Is told of values that are wrong before it is looked for where and why."""

    def begin(self) -> None:
        """Another module, or other sizes: what is known of earlier calls does not hold there."""
        self.reference_errors = None
        self.earlier = ()

    def is_open(self, context: ProblemContext) -> bool:
        """Whether some error was so near to its limit that calls have to decide."""
        _, enough = self._shares(context)
        return self.worst.error_share > enough

    def begin_deciding(self) -> None:
        self.begin()
        self.worst, self.decides = _NOTHING, True

    def copy(self) -> Verification:
        """As it is now; later calls do not change it."""
        return replace(self, seeds=list(self.seeds))

    def correctness(self, mismatch: Mismatch | None) -> Correctness | None:
        """What the calls so far say; None before the first."""
        if not self.made:
            return None
        return Correctness(
            calls_judged=self.judged,
            calls_judged_in_fp64=self.judged_in_fp64,
            # Those of a sampling are counted when it ends, if it does.
            calls_made=max(self.made, self.judged),
            reference=self.source,
            input_kinds=tuple(sorted({kind_of(seed) for seed in self.seeds})),
            error_ratio=self.worst.error_ratio,
            error_ratio_limit=self.worst.error_ratio_limit,
            thresholds=self.thresholds,
            error_part=self.worst.error_part,
            mismatch=mismatch,
        )

    def verify(self, outputs: SealedOutputs) -> None:
        """Compare the outputs of one call with the reference's; raises `Rejection`."""
        context, draw = outputs.context, outputs.draw
        self.judged += 1
        self.thresholds = context.reference.problem.thresholds
        self.seeds.append(draw.seed)
        expected = outputs.expected()
        # What passes without fp64 would pass with it; what does not is compared in fp64 after all.
        _, enough = self._shares(context)
        if (
            not self._wants_fp64(context)
            and self._compared(outputs, expected, None, most_share=enough, screening=True).ok
        ):
            self.earlier = (*self.earlier, draw)[-_KEPT_DRAWS:]
            return
        verdict = self._compared_in_fp64(outputs, expected, describing=True)
        self.judged_in_fp64 += self.source != "task_precision"
        self.worst = max(verdict, self.worst, key=attrgetter("error_share"))
        if verdict.ok:
            self.earlier = (*self.earlier, draw)[-_KEPT_DRAWS:]
            return
        mismatch = verdict.mismatch
        assert mismatch is not None
        if self.explains and mismatch.kind == "values" and not context.reference.changes_inputs:
            # What explaining it takes is no part of the record.
            aside, allowance = self.copy(), outputs.runner.said.allowance
            outputs.runner.said.allowance = replace(
                allowance, limit_s=min(allowance.limit_s, allowance.spent_s + _EXPLAINING_S)
            )
            explanation = Explanation(
                context,
                outputs.runner,
                draw,
                outputs.actual,
                lambda actual, draw: aside.is_right(
                    replace(outputs, actual=actual, draw=draw, beside=None)
                ),
                self.earlier,
                outputs.runner.word,
            )
            mismatch = explanation.of(mismatch)
        raise Rejection(
            Status.INCORRECT,
            _WRONG[mismatch.kind],
            f"{_what_is_wrong(context, mismatch.output)} is not what it should be",
            mismatch=mismatch,
        )

    def is_right(self, outputs: SealedOutputs) -> bool:
        """Whether the outputs of a call pass the rule; nothing is counted or explained."""
        expected = outputs.expected()
        passed = self._compared(outputs, expected, None, screening=True).ok
        return passed or self._compared_in_fp64(outputs, expected).ok

    def _shares(self, context: ProblemContext) -> tuple[float, float]:
        """How much of what is allowed a call may use, and how much leaves no question open."""
        is_left_open = (
            context.settings.precision is Precision.FP32
            and context.rules.fp32_tolerance is None
            and context.sequence is None
            and context.facts.reproducible
            and not (context.facts.is_random or self.decides)
        )
        return (_SLACK, _NEAR) if is_left_open else (1.0, 1.0)

    def _wants_fp64(self, context: ProblemContext) -> bool:
        if self.reference_errors is None:
            return True
        share = _EXACT_SECONDS / max(context.exact_seconds, _EXACT_SECONDS)
        return secrets.randbelow(2**32) < share * 2**32 and context.memory.can_take(
            context.memory.verifying_bytes
        )

    def _compared_in_fp64(
        self, outputs: SealedOutputs, expected: list[torch.Tensor], *, describing: bool = False
    ) -> OutputVerdict:
        context, draw, exact = outputs.context, outputs.draw, None
        if context.rules.fp32_tolerance is None:
            with context.memory.measured_verification():
                found = context.exact(draw)
            exact, self.source = found.outputs, found.source
        else:
            self.source = "task_precision"

        most_share, enough = self._shares(context)

        def beside(reference: list[torch.Tensor], multiple: float | None = None) -> OutputVerdict:
            return self._compared(
                outputs, reference, exact, multiple=multiple, most_share=most_share
            )

        verdict = beside(expected)
        if exact is not None:
            before = self.reference_errors or verdict.reference_errors
            self.reference_errors = tuple(map(_smaller, before, verdict.reference_errors))
        is_near = verdict.excusable or (verdict.ok and verdict.error_share > enough)
        if is_near and exact is not None:
            precision = context.settings.precision
            values = context.draws.values_of(draw)
            for other in nudged_outputs(context.reference, values, exact, precision, draw.seed):
                excused = beside(other, MULTIPLE[precision])
                if excused.ok and (not verdict.ok or excused.error_share < verdict.error_share):
                    verdict = excused
                if verdict.ok and verdict.error_share <= enough:
                    break
        if verdict.ok or not describing:
            return verdict
        self.stage("wrong: looking for where and why")
        return self._compared(outputs, expected, exact, most_share=most_share, describing=True)

    def _compared(
        self,
        outputs: SealedOutputs,
        expected: list[torch.Tensor],
        exact: Sequence[torch.Tensor] | None,
        *,
        multiple: float | None = None,
        most_share: float = 1.0,
        screening: bool = False,
        describing: bool = False,
    ) -> OutputVerdict:
        context, runner = outputs.context, outputs.runner
        # Ties are looked for in the inputs, and what is wrong is described with them.
        wanted = describing or any(not t.dtype.is_floating_point for t in expected)
        return compare(
            outputs.actual,
            [tensor.to(context.device) for tensor in expected],
            exact,
            inputs=flatten_arguments(context.draws.values_of(outputs.draw)) if wanted else (),
            precision=context.settings.precision,
            tolerance=context.rules.tolerance(context.settings.precision),
            thresholds=context.reference.problem.thresholds,
            accumulation=context.work.accumulation,
            poison=runner.poison if runner.word is None else runner.word,
            multiple=multiple,
            assumed_errors=self.reference_errors if screening else None,
            most_share=most_share,
            describing=describing,
            orders_ties=context.work.orders_ties,
        )


def is_near(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Whether outputs differ by no more than the algorithms of a library may, TF32 among them.

    Integers and booleans must be equal."""
    return len(some) == len(others) and all(map(_near, some, others))


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_meta or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    other = other.to(one.device)
    if not (one.is_floating_point() or one.is_complex()):
        return same(one, other)
    # Of a softmax over long rows, zeros would be near to everything by 1e-2 alone.
    norm = float(torch.linalg.vector_norm(other)) / max(other.numel(), 1) ** 0.5
    return close(one, other, rtol=_LIBRARY, atol=_LIBRARY * min(1.0, norm))


def _smaller(one: float | None, other: float | None) -> float | None:
    return min((error for error in (one, other) if error is not None), default=None)


def _what_is_wrong(context: ProblemContext, number: int) -> str:
    changed = number - len(context.facts.outputs)
    return f"output {number}" if changed < 0 else f"input {changed}, as forward leaves it,"
