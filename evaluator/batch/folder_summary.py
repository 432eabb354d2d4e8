"""What the kernels of a folder came to, all together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluator.evaluation import Evaluation, Status, Timing, Verdict
from evaluator.metrics import fast_p

_THRESHOLDS = (1.0, 1.5, 2.0)


@dataclass
class FolderSummary:
    """Counts and shares over kernels: each file is one attempt at its problem.

    A kernel that cannot be judged counts for nothing but its own number: it may be right or wrong.
    """

    correct: int = 0
    not_judged: int = 0
    _timings: list[Timing | None] = field(default_factory=list, init=False)
    """Of each kernel that was judged; None where it has no time."""

    @property
    def kernels(self) -> int:
        return len(self._timings) + self.not_judged

    def add(self, outcome: Evaluation | Exception) -> None:
        if isinstance(outcome, Exception):
            self.not_judged += 1
            return
        self.correct += outcome.status is Status.CORRECT
        # What our own checks hold against a kernel is no speed of its.
        self._timings.append(None if outcome.findings else outcome.timing)

    def lines(self) -> Iterator[str]:
        missing = f"; {self.not_judged} cannot be judged" if self.not_judged else ""
        yield f"{self.correct} of {self.kernels} kernels are correct{missing}"
        judged = len(self._timings)
        if not judged:
            return
        thresholds = "".join(f"{f'p = {p:g}':>9}" for p in (0.0, *_THRESHOLDS))
        of = "kernel" if judged == 1 else f"{judged} kernels"
        yield f"{f'fast_p over eager, of {of} judged':40}{thresholds}"
        yield self._row("by the estimate", [t.speedup if t else None for t in self._timings])
        # The verdict asks for a margin besides: equal kernels differ a little too.
        clearly = [
            t.speedup_low if t and t.verdict is Verdict.FASTER else None for t in self._timings
        ]
        yield self._row("clearly, by the interval", clearly)
        untimed = self.correct - sum(timing is not None for timing in self._timings)
        if untimed:
            yield f"{untimed} correct without a time: counted at p = 0 alone"

    def _row(self, name: str, speedups: Sequence[float | None]) -> str:
        shares = [self.correct / len(speedups), *(fast_p(speedups, p) for p in _THRESHOLDS)]
        return f"  {name:38}" + "".join(f"{share:9.3f}" for share in shares)
