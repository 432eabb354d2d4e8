"""One claim beside what was measured, and the sums over many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluator.batch.claims.claim import Claim
from evaluator.batch.parallel_judging import Outcome
from evaluator.evaluation import BaselineTiming, Evaluation, Status
from evaluator.metrics import geometric_mean
from evaluator.record import Record
from evaluator.settings import BaselineName, Precision


class ClaimOutcome(StrEnum):
    """How a claimed speedup compares with ours over eager."""

    MORE = "more"
    """The whole 95 % interval lies above the claim."""
    WITHIN = "within"
    """The interval holds the claim; a wide interval proves little."""
    LESS = "less"
    """The whole interval lies below the claim."""
    NO_TIME = "no_time"
    """Correct, but without a time, or with a finding of our own checks."""
    REFUSED = "refused"
    NOT_JUDGED = "not_judged"
    """Through no fault of the kernel."""


class JudgedClaim(Record):
    """One kernel's claim, verdict and measured speedups. Written as JSON."""

    kernel: str
    """The file's name."""
    problem: str
    level: int
    claimed: float | None
    """None where the file of claims has none for this kernel."""
    outcome: ClaimOutcome | None
    """None where nothing was claimed."""
    status: str
    """As in an evaluation, or `not_judged`."""
    reason: str = ""
    message: str = ""
    findings: tuple[str, ...] = ()
    error_ratio: float | None = None
    rivals: dict[BaselineName, BaselineTiming]
    """Our speedup over each baseline, with its 95 % interval."""
    kernelbench: str = ""
    """KernelBench's verdict: from the file of claims, or of `--protocol kernelbench` here."""
    kernelbench_message: str = ""
    """What `--protocol kernelbench` said, where it was asked."""
    device: str = ""

    @property
    def differs(self) -> bool:
        """Whether KernelBench calls correct what we don't, or the other way round."""
        if not self.kernelbench or self.status == "not_judged":
            return False
        return (self.kernelbench == Status.CORRECT) != (self.status == Status.CORRECT)


def judge_claim(
    kernel: str,
    problem: str,
    level: int,
    claim: Claim | None,
    outcome: Outcome,
    under_kernelbench: Outcome | None,
) -> JudgedClaim:
    claimed = claim.speedup if claim else None
    theirs, said = claim.kernelbench if claim else "", ""
    if isinstance(under_kernelbench, Evaluation):
        theirs, said = under_kernelbench.status, under_kernelbench.message
    ours = outcome if isinstance(outcome, Evaluation) else None
    correctness = ours.correctness if ours else None
    return JudgedClaim(
        kernel=kernel,
        problem=problem,
        level=level,
        claimed=claimed,
        outcome=None if claimed is None else _outcome(claimed, ours),
        status=ours.status if ours else "not_judged",
        reason=_reason(ours) if ours else type(outcome).__name__,
        message=ours.message if ours else str(outcome),
        findings=ours.findings if ours else (),
        error_ratio=correctness.error_ratio if correctness else None,
        rivals=ours.timing.baselines if ours and ours.timing else {},
        kernelbench=theirs,
        kernelbench_message=said,
        device=ours.device if ours else "",
    )


def _outcome(claimed: float, evaluation: Evaluation | None) -> ClaimOutcome:
    if evaluation is None:
        return ClaimOutcome.NOT_JUDGED
    if evaluation.status is not Status.CORRECT:
        return ClaimOutcome.REFUSED
    timing = evaluation.timing
    if timing is None or evaluation.findings:
        return ClaimOutcome.NO_TIME
    if timing.speedup_low > claimed:
        return ClaimOutcome.MORE
    return ClaimOutcome.WITHIN if timing.speedup_high >= claimed else ClaimOutcome.LESS


def _reason(evaluation: Evaluation) -> str:
    """With the likeliest cause of wrong values, where one is known."""
    found = evaluation.correctness.mismatch if evaluation.correctness else None
    cause = f" ({found.patterns[0]})" if found and found.patterns else ""
    return evaluation.reason + cause


@dataclass(frozen=True)
class Adjudication:
    rows: Sequence[JudgedClaim]
    precision: Precision
    protocol: str

    def lines(self) -> Iterator[str]:
        """The sums, for a person; claims name their rival."""
        claimed = [row for row in self.rows if row.claimed is not None]
        counts = Counter(row.outcome for row in claimed)
        yield (
            f"claims: {len(claimed)} of {len(self.rows)} kernels have one; measured over "
            f"{rival_words(BaselineName.EAGER, self.rows)}"
        )
        yield "  " + ", ".join(
            f"{counts[outcome]} {_WORDS[outcome]}" for outcome in ClaimOutcome if counts[outcome]
        )
        for name in BaselineName:
            timed = [row for row in claimed if _has_figure(row) and name in row.rivals]
            if timed:
                theirs = geometric_mean([row.claimed for row in timed if row.claimed])
                ours = geometric_mean([row.rivals[name].speedup for row in timed])
                words = rival_words(name, self.rows)
                yield (
                    f"  geometric mean of {len(timed)}: claimed {theirs:.3g}x, "
                    f"measured {ours:.3g}x over {words}"
                )
        if reasons := self.reasons():
            yield "  refused: " + ", ".join(f"{reason} {n}" for reason, n in reasons)
        asked = [row for row in self.rows if row.kernelbench]
        if asked:
            differing = [row for row in asked if row.differs]
            yield f"  KernelBench's verdict differs on {len(differing)} of {len(asked)}"
            for row in differing:
                yield f"    {difference(row)}"

    def reasons(self) -> list[tuple[str, int]]:
        refused = (r.reason for r in self.rows if r.status not in ("not_judged", Status.CORRECT))
        return Counter(refused).most_common()


def difference(row: JudgedClaim) -> str:
    ours = row.status + (f", {row.reason}" if row.reason else "")
    said = (row.message or row.kernelbench_message).partition("\n")[0]
    return f"{row.kernel}: {row.kernelbench} by KernelBench, {ours} here" + (said and f": {said}")


def rival_words(name: BaselineName, rows: Sequence[JudgedClaim]) -> str:
    """What a speedup is over, with its flags, so that a reader knows whether it is theirs."""
    flags = {row.rivals[name].flags for row in rows if name in row.rivals} - {""}
    return f"{name} ({', '.join(sorted(flags))})" if flags else name


_WORDS = {
    ClaimOutcome.MORE: "above the claim",
    ClaimOutcome.WITHIN: "with the claim in the interval",
    ClaimOutcome.LESS: "below the claim",
    ClaimOutcome.NO_TIME: "correct without a time that counts",
    ClaimOutcome.REFUSED: "refused",
    ClaimOutcome.NOT_JUDGED: "not judged",
}


def _has_figure(row: JudgedClaim) -> bool:
    return row.outcome in (ClaimOutcome.MORE, ClaimOutcome.WITHIN, ClaimOutcome.LESS)
