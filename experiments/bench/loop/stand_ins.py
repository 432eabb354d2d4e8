"""Model, judge and profiler that answer at once, with what a recorded run was answered.

So what a run takes with them is what everything else takes. Nothing they say was measured here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from agent.record.archive import unpacked
from agent.record.completion import Completion, CompletionRequest, Tell, Usage, unheard
from agent.record.run_files import RunFiles
from evaluator.evaluation import Backend, Evaluation, EvaluationRequest, ProblemRequest
from tools.profiling.profile_report import Profile

RECORDING = unpacked(Path(__file__).resolve().parents[2] / "recordings" / "refine-tuner-cpu.tar.xz")
_Item = TypeVar("_Item")


def _one_of(items: Sequence[_Item], text: str) -> _Item:
    """The item that follows from `text`."""
    return items[zlib.crc32(text.encode()) % len(items)]


class InstantModel:
    """Answers every request with a recorded kernel, which names its turn: no two are the same."""

    def __init__(self) -> None:
        files = RunFiles(RECORDING)
        self._kernels = [files.kernel(turn.candidate) for turn in files.turns() if turn.candidate]
        self.calls = 0

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """The answer follows from the request's place."""
        self.calls += 1
        place = f"{request.problem}.{request.sample}.{request.turn}"
        kernel = _one_of(self._kernels, place)
        return Completion(
            text=f'Here:\n\n```python\n{kernel}\nTURN = "{place}"\n```\n',
            model_asked=request.model,
            model_answered="instant",
            usage=Usage(prompt_tokens=1200, completion_tokens=1900, cost_usd=0.0125),
            seconds=12.5,
        )


class InstantJudge(AbstractContextManager["InstantJudge", None]):
    """An executor that gives recorded verdicts; `before` hears of each request."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self._before = before
        self._evaluations = [turn.evaluation for turn in RunFiles(RECORDING).turns()]

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        """There is nothing to start."""

    def build_ahead(self, request: EvaluationRequest) -> None:
        """Nothing is built."""

    def check(self, request: ProblemRequest) -> None:
        """Every problem can be judged."""

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """The verdict follows from the kernel's text."""
        self._before()
        return _one_of(self._evaluations, request.candidate.source)

    def close(self) -> None:
        """Nothing was started."""

    def __exit__(self, *raised: object) -> None:
        """Nothing was started."""


def instant_profiler() -> Callable[[EvaluationRequest, Evaluation], Profile]:
    """A profiler that gives recorded profiles."""
    profiles = [turn.profile for turn in RunFiles(RECORDING).turns() if turn.profile is not None]
    return lambda request, evaluation: _one_of(profiles, request.candidate.source)
