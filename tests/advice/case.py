"""One kernel with a planted inefficiency and its mended twin, written as a unified diff.

In `cuda` and `forward` a line that begins with `-` is in the planted kernel only, one that begins
with `+` in the twin only, and any other begins with a space and is in both. So what differs is
what is planted, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.evaluation import Backend, Candidate, EvaluationRequest
from evaluator.ipc.build_request import BuildRequest
from evaluator.settings import Precision, Settings
from tests.advice.job import Job
from tests.advice.module import FORWARD, build_request, module
from tests.advice.result import Side

SIDES: tuple[Side, ...] = ("planted", "mended")
_MARKS = {"planted": "-", "mended": "+"}
_FORWARD = "".join(f" {line}\n" if line else "\n" for line in FORWARD.split("\n"))


@dataclass(frozen=True)
class Case:
    """A function to compute, a slow way with one fault, and the same without it."""

    name: str
    fault: str
    """What is planted, for the table."""
    rules: frozenset[str]
    """Rules of advice that name the fault; more than one only where they mean the same thing."""
    reference: str
    """The problem, by KernelBench's contract."""
    cuda: str
    """The kernels and `run`, a diff."""
    forward: str = _FORWARD
    """The module's methods, a diff."""
    precision: Precision = Precision.FP32

    def source(self, side: Side) -> str:
        """The candidate's file."""
        return module(f"{self.name}_{side}", _only(self.cuda, side), _only(self.forward, side))

    def candidate(self, side: Side) -> Candidate:
        """As the judge gets it."""
        return Candidate(source=self.source(side), backend=Backend.CUDA)

    def request(self, side: Side, device: str, timing_seconds: float) -> EvaluationRequest:
        """What the judge is asked."""
        return EvaluationRequest(
            problem_id=self.name,
            reference=self.reference,
            candidate=self.candidate(side),
            settings=Settings(
                device=device,
                precision=self.precision,
                timing_seconds=timing_seconds,
                audit="never",
            ),
        )

    def job(self, side: Side, device: str, timing_seconds: float) -> Job:
        """What is run."""
        request = self.request(side, device, timing_seconds)
        return Job(self.name, side, request, self.build_request(side))

    def build_request(self, side: Side) -> BuildRequest:
        """What the candidate will ask of the builder."""
        return build_request(self.source(side))


def _only(diff: str, side: Side) -> str:
    kept = {" ", _MARKS[side]}
    lines = diff.strip("\n").split("\n")
    return "".join(f"{line[1:]}\n" for line in lines if not line or line[0] in kept)
