"""What a kernel came to on a GPU, with the advice that the present rules give on it.

So rules can be changed without a GPU, and stay honest to what was measured on one.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from evaluator.collect.collected import Collected
from evaluator.record import Record
from tools.advice.diagnosis import Diagnosis, diagnose
from tools.advice.figures import figures
from tools.profiling.profile_facts import Facts

DATA = Path(__file__).parents[1] / "data" / "advice"


class Measured(Record):
    """One kernel, judged and profiled."""

    case: str
    side: str
    own: tuple[str, ...]
    """Names of the candidate's own kernels."""
    latency_us: float
    bound_us: float | None
    attainable_us: float | None
    collected: Collected

    @property
    def figures(self) -> dict[str, float]:
        times = (self.latency_us, self.bound_us, self.attainable_us)
        return figures(Facts(self.collected, frozenset(self.own), *times))

    @property
    def diagnosis(self) -> Diagnosis:
        return diagnose(self.figures)


def stored(path: Path) -> list[Measured]:
    """The kernels of one file, in the order in which they were measured."""
    with gzip.open(path, "rt") as lines:
        return [Measured.model_validate_json(line) for line in lines]
