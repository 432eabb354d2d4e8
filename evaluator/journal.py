"""The verdicts of an unfinished folder, on disk, so that an interrupted command goes on."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.many import Evaluates
from problems.cache_folder import cache_folder
from problems.errors import UsageError


class Journal:
    """Asks the judge only for what is not in its file yet.

    The file has one JSON object a line: the SHA-256 of a request, and its evaluation. A failure of
    ours is not in it, so it is tried again. `remove` deletes the file once the folder is finished.
    """

    def __init__(self, path: Path, judge: Evaluates) -> None:
        """Raises `UsageError` where the file is not ours."""
        self.path = path
        self._judge = judge
        self._lock = threading.Lock()
        self._known = _read(path) if path.exists() else {}
        self.kept = len(self._known)
        """How many verdicts an earlier command left."""

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """The evaluation in the file, or a new one, which is written to it at once."""
        key = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        if key in self._known:
            return self._known[key]
        evaluation = self._judge.evaluate(request)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"request": key, "evaluation": evaluation.model_dump(mode="json", by_alias=True)}
        with self._lock, self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return evaluation

    def remove(self) -> None:
        """Every kernel has its verdict: the next command judges anew."""
        self.path.unlink(missing_ok=True)


def journal_path(results: Path) -> Path:
    """Where the verdicts of a folder are kept whose results go to this file.

    It is among the user's own files, and never in the folder: who sends a folder of kernels could
    send verdicts with it.
    """
    name = hashlib.sha256(str(results.resolve()).encode()).hexdigest()[:16]
    return cache_folder() / "unfinished" / f"{name}.jsonl"


def _read(path: Path) -> dict[str, Evaluation]:
    # What follows the last line end was being written when the command was interrupted.
    whole = path.read_text()
    whole = whole[: whole.rfind("\n") + 1]
    known = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            entry = json.loads(line)
            known[entry["request"]] = Evaluation.model_validate(entry["evaluation"])
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{path}, line {number}, is no verdict of this version: delete the file to judge "
                "all kernels anew"
            ) from None
    path.write_text(whole)
    return known
