"""The bench's candidates: kernels as models write them, each with its problem and its verdict.

A candidate is a file of `candidates/BACKEND/`; its first two lines say what it answers and what it
must come to: `# problem: level1_1_swish`, `# expected: correct`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.settings import Settings
from problems.errors import UsageError
from problems.loader import load_problem
from problems.problem import Problem
from problems.sizes import SizeClass
from problems.source_file import read_source
from tools.execute import own_module

FOLDER = Path(__file__).parent / "candidates"
_HEAD = re.compile(r"# problem: (\S+)\n# expected: (\w+)\n")


@dataclass(frozen=True)
class BenchCandidate:
    """One kernel, what it answers and what it must come to."""

    name: str
    """Backend and file, as in `cuda/swish_simple`."""
    backend: Backend
    problem: Problem
    expected: Status
    source: str
    size: SizeClass = SizeClass.CPU
    """The small sizes, on any device: a turn is measured, not a kernel."""

    @property
    def reference(self) -> str:
        return self.problem.reference(self.size)

    def request(self, settings: Settings) -> EvaluationRequest:
        return EvaluationRequest(
            problem_id=self.problem.id,
            reference=self.reference,
            hidden_references=self.problem.hidden_references(self.size),
            candidate=Candidate(source=self.source, backend=self.backend),
            settings=settings,
        )


def catalogue(only: Sequence[Backend] = (), limit: int | None = None) -> list[BenchCandidate]:
    """All candidates, or those of some backends, by problem; `limit` keeps the first so many.

    Raises `UsageError` for a file whose first lines don't say what it is.
    """
    backends = tuple(only) or tuple(Backend)
    found = [
        _read(path, backend)
        for backend in backends
        for path in sorted((FOLDER / backend).glob("*.py"))
    ]
    found.sort(key=lambda candidate: (candidate.backend, candidate.problem.id, candidate.name))
    return found if limit is None else found[: max(limit, 0)]


def own_modules(problems: Sequence[Problem], device: str) -> list[BenchCandidate]:
    """Each problem's own module as its candidate, at the sizes of the device: nothing to build, and
    as fast as the reference."""
    size = SizeClass.of(device)
    return [
        BenchCandidate(
            name=f"own/{problem.id}",
            backend=runnable(device)[0],
            problem=problem,
            expected=Status.CORRECT,
            source=own_module(problem.reference(size)),
            size=size,
        )
        for problem in problems
    ]


def runnable(device: str) -> tuple[Backend, ...]:
    """The backends whose candidates run on a device."""
    return (Backend.CPP,) if device == "cpu" else (Backend.CUDA, Backend.TRITON)


def _read(path: Path, backend: Backend) -> BenchCandidate:
    source = read_source(path)
    head = _HEAD.match(source)
    if head is None:
        raise UsageError(f"{path} must begin with '# problem: ID' and '# expected: STATUS'")
    return BenchCandidate(
        name=f"{backend}/{path.stem}",
        backend=backend,
        problem=load_problem(head[1]),
        expected=Status(head[2]),
        source=source,
    )
