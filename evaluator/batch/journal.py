"""The verdicts of an unfinished folder, on disk, so that an interrupted command goes on."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from contextlib import suppress
from pathlib import Path

from evaluator.batch.parallel_judging import Evaluates
from evaluator.evaluation import Evaluation, EvaluationRequest
from problems.cache_folder import cache_folder, keep


class Journal:
    """Asks the judge only for what is not in its folder yet: one file a verdict.

    An infrastructure failure is not kept, nor a time limit's verdict: both are tried again.
    `remove` deletes the folder once the command has come to its end.
    """

    def __init__(self, folder: Path, judge: Evaluates) -> None:
        self._folder = folder
        self._judge = judge
        self.taken = 0

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        # Another machine may have another device of that name.
        asked = f"{platform.node()} {request.model_dump_json()}"
        path = self._folder / f"{hashlib.sha256(asked.encode()).hexdigest()}.json"
        with suppress(OSError, ValueError):
            known = Evaluation.model_validate_json(path.read_text())
            self.taken += 1
            return known
        evaluation = self._judge.evaluate(request)
        # What a limit of time decided may be otherwise the next time.
        if evaluation.is_lasting:
            keep(path, json.dumps(evaluation.as_json()))
        return evaluation

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def journal_of(results: Path) -> Path:
    """Where the verdicts of a folder are kept whose results go to this file.

    It is among the user's own files, and never in the folder: who sends a folder of kernels could
    send verdicts with it.
    """
    name = hashlib.sha256(str(results.resolve()).encode()).hexdigest()[:16]
    return cache_folder() / "unfinished" / name
