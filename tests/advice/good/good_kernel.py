"""One kernel that is good as it is, with its label."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.check import backend_of
from evaluator.evaluation import Candidate, EvaluationRequest
from evaluator.settings import Precision, Settings
from tests.advice.good.label import Label
from tests.advice.job import Job
from tests.advice.module import FORWARD, build_request, module


@dataclass(frozen=True)
class GoodKernel:
    """A function to compute, and a tuned way to do so."""

    name: str
    reference: str
    """The problem, by KernelBench's contract."""
    source: str
    """The candidate's file, with `ModelNew`."""
    label: Label
    precision: Precision = Precision.FP32

    def job(self, device: str, timing_seconds: float) -> Job:
        """What the judge and the builder are asked."""
        settings = Settings(
            device=device, precision=self.precision, timing_seconds=timing_seconds, audit="never"
        )
        request = EvaluationRequest(
            problem_id=self.name,
            reference=self.reference,
            candidate=Candidate(source=self.source, backend=backend_of(self.source, device)),
            settings=settings,
        )
        build = build_request(self.source) if "load_inline" in self.source else None
        return Job(self.name, "good", request, build)


def cuda(name: str, code: str, forward: str = FORWARD) -> str:
    """A candidate's file with these kernels and `run`, and these methods of the module."""
    return module(f"good_{name}", code, forward)
