"""What the cells of a study share: first drafts, and verdicts and profiles of identical kernels.

Each is made by the cell that asks first, and kept in the study's folder. Every cell is charged for
what it takes, as if it were alone: equal budgets stay equal.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent.loop.judging import Judging
from agent.record.completion import Completion, CompletionRequest, ModelClient, Tell, unheard
from agent.record.durable import write_durably
from agent.record.store import text_hash
from evaluator.evaluation import Backend, Evaluation, EvaluationRequest
from evaluator.executor.executor import Executor
from evaluator.record import Record
from evaluator.rival import CheckRequest, Rival
from tools.profiling.profile_report import Profile

Kind = TypeVar("Kind", bound=Record)


class SharedWork:
    """Results by what was asked. Safe to call from several threads of one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)

    def once(self, kind: type[Kind], asked: str, make: Callable[[], Kind]) -> Kind:
        """What `make` returned where it was first asked for; what it raises is kept nowhere."""
        path = self._folder / kind.__name__.lower() / f"{text_hash(asked)}.json"
        with self._lock:
            lock = self._locks[path]
        with lock:
            if path.exists():
                return kind.model_validate_json(path.read_bytes())
            made = make()
            write_durably(path, made.model_dump_json() + "\n")
            return made

    def judging(self, judging: Judging) -> Judging:
        """The same judge, and profiler, asked once about each kernel."""

        def profile(request: EvaluationRequest, evaluation: Evaluation) -> Profile:
            asked = request.model_dump_json()
            return self.once(Profile, asked, lambda: judging.profiler(request, evaluation))

        executor = _SharedExecutor(judging.executor, self)
        return Judging(executor, profile, judging.place, judging.note)


@dataclass(frozen=True)
class SharedDrafts:
    """A cell's model, of which the first turns' answers are those of all cells."""

    cell: ModelClient
    drafts: ModelClient
    model: str
    """As `drafts` is called: where answers are relayed, its folder is no cell's."""
    work: SharedWork

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        if request.turn:
            return self.cell.complete(request, tell, so_far)
        asked = request.model_copy(update={"model": self.model})
        return self.work.once(
            Completion, asked.model_dump_json(), lambda: self.drafts.complete(asked, tell, so_far)
        )


class _SharedExecutor(Executor):
    def __init__(self, executor: Executor, work: SharedWork) -> None:
        self._executor, self._work = executor, work

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        self._executor.prepare(candidates, backend)

    def check(self, request: CheckRequest) -> Rival:
        return self._executor.check(request)

    def build_ahead(self, request: EvaluationRequest) -> None:
        self._executor.build_ahead(request)

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        asked = request.model_dump_json()
        return self._work.once(Evaluation, asked, lambda: self._executor.evaluate(request))

    def close(self) -> None:
        self._executor.close()

    def __exit__(self, *_: object) -> None:
        self.close()
