"""Judges wrong versions of right kernels: `python -m tests.mutation.run --limit 1000 --out F`.

The real judge in its own process, one mutant after the other. What was judged already is not judged
again, so that a run may be broken off and taken up.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from evaluator.errors import InfrastructureError
from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from tests.mutation.argument import read_arguments
from tests.mutation.judged import Judged, judge, judge_subject, read
from tests.mutation.mutant import Mutant, draw
from tests.mutation.subject import Subject, subjects
from tests.mutation.summary import summary

_BATCH = 120
"""Mutants that are sorted by problem, so that few problems have to be set up."""
_ATTEMPTS = 3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--limit", type=int, default=1000)
    options.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    chosen = options.parse_args()
    run(subjects(), chosen.seed, chosen.limit, chosen.out)
    argued = [argument.id for argument in read_arguments() if argument.equivalent]
    print(summary(list(read(chosen.out)), argued))


def run(kernels: Sequence[Subject], seed: int, limit: int, out: Path) -> None:
    """Judge all kernels, then `limit` mutants of those that are right; append to `out`."""
    done = {record.id: record for record in read(out)}
    with LocalExecutor("cpu") as executor:
        right = []
        for subject in kernels:
            record = done.get(f"subject {subject.name}")
            if record is None:
                record = _insist(partial(judge_subject, executor, subject))
                _append(out, record)
            if record.status is Status.CORRECT:
                right.append(subject)
            else:
                print(f"not right itself: {subject.name}: {record.reason} {record.message}")
        mutants = draw(right, seed, limit)
        for start in range(0, len(mutants), _BATCH):
            batch = [m for m in mutants[start : start + _BATCH] if m.id not in done]
            for mutant in sorted(batch, key=_by_problem):
                record = _insist(partial(judge, executor, mutant))
                _append(out, record)
                if record.built and not record.killed:
                    print(f"survived: {record.id} {record.subject}: {record.rule}: {record.shown}")


def _by_problem(mutant: Mutant) -> str:
    return mutant.subject.reference


def _insist(attempt: Callable[[], Judged]) -> Judged:
    """The machine may fail for once; a kernel is not to be blamed for it."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except InfrastructureError as error:
            print(f"again, after: {error}")
    return attempt()


def _append(out: Path, record: Judged) -> None:
    with out.open("a") as file:
        file.write(record.model_dump_json() + "\n")


if __name__ == "__main__":
    main()
