"""The verdicts of an unfinished folder, on disk, so that an interrupted command goes on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
from pathlib import Path

from evaluator.batch.parallel_judging import Evaluates
from evaluator.evaluation import Evaluation, EvaluationRequest
from problems.cache_folder import cache_folder
from problems.errors import UsageError
from problems.plain_file import open_plain, write_plain, writing

_MOST_BYTES = 2**30


class Journal:
    """Asks the judge only for what is not in its file yet.

    The file has one JSON object a line: the SHA-256 of a request on this machine, and its
    evaluation. An infrastructure failure is not in it, nor a time limit's verdict: both are tried
    again. `remove` deletes the file once the command has come to its end.
    """

    def __init__(self, path: Path, judge: Evaluates) -> None:
        """Raises `UsageError` where the file is not ours, or can't be written."""
        self.path = path
        self._judge = judge
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))
            self._known = _read(path)
        except OSError as error:
            raise UsageError(
                f"{path} can't be used ({error.strerror}): set KERNEL_REFINERY_CACHE to a "
                "folder of yours"
            ) from None
        self.taken = 0

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        # Another machine may have another device of that name.
        asked = f"{platform.node()} {request.model_dump_json()}"
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key in self._known:
            self.taken += 1
            return self._known[key]
        evaluation = self._judge.evaluate(request)
        # What a limit of time decided may be otherwise the next time.
        if evaluation.is_lasting:
            line = {"request": key, "evaluation": evaluation.as_json()}
            with self._lock, writing(self.path), self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return evaluation

    def remove(self) -> None:
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
    with open_plain(path, _MOST_BYTES) as file:
        whole = file.read(_MOST_BYTES).decode(errors="replace")
    whole = whole[: whole.rfind("\n") + 1]
    known = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            entry = json.loads(line)
            known[entry["request"]] = Evaluation.model_validate(entry["evaluation"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(
                f"{path}, line {number}, is no verdict of this version: delete the file to judge "
                "all kernels anew"
            ) from None
    write_plain(path, whole)
    return known
