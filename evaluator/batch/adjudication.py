"""Claims held against what was measured: sums for a person, and JSON with all of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import geometric_mean

from pydantic import computed_field

from evaluator.batch.claim import Claim
from evaluator.evaluation import BaselineTiming, Evaluation, Status
from evaluator.record import Record
from evaluator.settings import BaselineName, Precision
from problems.plain_file import write_plain

WHOLE = "adjudication.json"


class ClaimOutcome(StrEnum):
    """How a claimed speedup compares with ours over eager."""

    MORE = "more"
    """The whole interval lies above the claim."""
    WITHIN = "within"
    """The interval holds the claim; a wide interval proves little."""
    LESS = "less"
    """The whole interval lies below the claim."""
    NO_TIME = "no_time"
    """Correct, but without a time, or with a finding of our own checks."""
    REFUSED = "refused"
    NOT_JUDGED = "not_judged"
    """Through no fault of the kernel."""


_WORDS = {
    ClaimOutcome.MORE: "above the claim",
    ClaimOutcome.WITHIN: "with the claim in the interval",
    ClaimOutcome.LESS: "below the claim",
    ClaimOutcome.NO_TIME: "correct without a time that counts",
    ClaimOutcome.REFUSED: "refused",
    ClaimOutcome.NOT_JUDGED: "not judged",
}
_FIGURES = (ClaimOutcome.MORE, ClaimOutcome.WITHIN, ClaimOutcome.LESS)


class JudgedClaim(Record):
    """One kernel's claim and verdict. Written as JSON."""

    kernel: str
    problem: str
    level: int
    claim: Claim | None
    evaluation: Evaluation | None
    error: str = ""
    """The infrastructure failure that prevented an evaluation."""
    under_kernelbench: Evaluation | None = None
    """The verdict of `--protocol kernelbench`, where it was asked for."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def claimed(self) -> float | None:
        return self.claim.speedup if self.claim else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def outcome(self) -> ClaimOutcome | None:
        """None where nothing was claimed."""
        if self.claim is None:
            return None
        if self.evaluation is None:
            return ClaimOutcome.NOT_JUDGED
        if self.evaluation.status is not Status.CORRECT:
            return ClaimOutcome.REFUSED
        timing = self.evaluation.timing
        if timing is None or self.evaluation.findings:
            return ClaimOutcome.NO_TIME
        if timing.speedup_low > self.claim.speedup:
            return ClaimOutcome.MORE
        within = timing.speedup_high >= self.claim.speedup
        return ClaimOutcome.WITHIN if within else ClaimOutcome.LESS

    @computed_field  # type: ignore[prop-decorator]
    @property
    def differs(self) -> bool:
        """Whether KernelBench calls correct what we don't, or the other way round."""
        if not self.kernelbench or self.evaluation is None:
            return False
        return (self.kernelbench == Status.CORRECT) != self.is_correct

    @property
    def kernelbench(self) -> str:
        """KernelBench's verdict: of `--protocol kernelbench`, else from the file of claims."""
        if self.under_kernelbench is not None:
            return self.under_kernelbench.status
        return self.claim.kernelbench if self.claim else ""

    @property
    def is_correct(self) -> bool:
        return self.evaluation is not None and self.evaluation.status is Status.CORRECT

    @property
    def rivals(self) -> Mapping[BaselineName, BaselineTiming]:
        timing = self.evaluation.timing if self.evaluation else None
        return timing.baselines if timing else {}

    @property
    def reason(self) -> str:
        """With the likeliest cause of wrong values, where one is known."""
        if self.evaluation is None:
            return ""
        correctness = self.evaluation.correctness
        found = correctness.mismatch if correctness else None
        cause = f" ({found.patterns[0]})" if found and found.patterns else ""
        return self.evaluation.reason + cause

    @property
    def difference(self) -> str:
        assert self.evaluation is not None
        ours = self.evaluation.status + (f", {self.reason}" if self.reason else "")
        theirs = self.under_kernelbench.message if self.under_kernelbench else ""
        said = (self.evaluation.message or theirs).partition("\n")[0]
        words = f"{self.kernel}: {self.kernelbench} by KernelBench, {ours} here"
        return words + (f": {said}" if said else "")


@dataclass(frozen=True)
class Adjudication:
    rows: Sequence[JudgedClaim]
    precision: Precision
    protocol: str

    def lines(self) -> Iterator[str]:
        claimed = [row for row in self.rows if row.claim]
        counts = Counter(row.outcome for row in claimed)
        yield (
            f"claims: {len(claimed)} of {len(self.rows)} kernels have one; measured over "
            f"{self._rival(BaselineName.EAGER)}"
        )
        yield "  " + ", ".join(
            f"{counts[outcome]} {_WORDS[outcome]}" for outcome in ClaimOutcome if counts[outcome]
        )
        for name in BaselineName:
            timed = [row for row in claimed if row.outcome in _FIGURES and name in row.rivals]
            if timed:
                theirs = geometric_mean([row.claim.speedup for row in timed if row.claim])
                ours = geometric_mean([row.rivals[name].speedup for row in timed])
                yield (
                    f"  geometric mean of {len(timed)}: claimed {theirs:.3g}x, "
                    f"measured {ours:.3g}x over {self._rival(name)}"
                )
        refused = Counter(row.reason for row in self.rows if row.evaluation and not row.is_correct)
        if refused:
            yield "  refused: " + ", ".join(f"{each} {n}" for each, n in refused.most_common())
        if asked := [row for row in self.rows if row.kernelbench]:
            differing = [row for row in asked if row.differs]
            yield f"  KernelBench's verdict differs on {len(differing)} of {len(asked)}"
            for row in differing:
                yield f"    {row.difference}"

    def write(self, folder: Path) -> Path:
        kernels = [row.as_json() for row in self.rows]
        found = {"protocol": self.protocol, "precision": self.precision, "kernels": kernels}
        write_plain(whole := folder / WHOLE, json.dumps(found, indent=1) + "\n")
        return whole

    def _rival(self, name: BaselineName) -> str:
        flags = {row.rivals[name].flags for row in self.rows if name in row.rivals} - {""}
        return f"{name} ({', '.join(sorted(flags))})" if flags else name


def is_ours(text: str) -> bool:
    return text.startswith('{\n "protocol"')
