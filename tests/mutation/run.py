"""Judges wrong versions of right kernels: `python -m tests.mutation.run --limit 1000 --out F`.

The real judge in its own process, one mutant after the other. What was judged already is not
judged again, so that a run may be broken off and taken up. With `--part I/N` it judges every N-th
only, from the I-th on: several can run side by side, each with its own processors, TMPDIR and
`--out`. Mutants are drawn once all kernels are known, so the parts first run with `--limit 0`;
their files, put together without repetitions, are what each goes on from.
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
from tests.mutation.subject import CORPORA, Subject, subjects
from tests.mutation.summary import summary

_BATCH = 120
"""Mutants that are sorted by problem, so that few problems have to be set up."""
_ATTEMPTS = 3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--corpus", choices=CORPORA, default=CORPORA[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--limit", type=int, default=1000)
    options.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    options.add_argument("--part", type=_part, default=(0, 1), metavar="I/N", help="I from 0 on")
    chosen = options.parse_args()
    run(subjects(chosen.corpus), chosen.seed, chosen.limit, chosen.out, chosen.part)
    argued = [argument.id for argument in read_arguments() if argument.equivalent]
    print(summary(list(read(chosen.out)), argued))


def _part(written: str) -> tuple[int, int]:
    part, of = map(int, written.split("/"))
    if not 0 <= part < of:
        raise ValueError(written)
    return part, of


def run(
    kernels: Sequence[Subject], seed: int, limit: int, out: Path, part: tuple[int, int] = (0, 1)
) -> None:
    """Judge all kernels, then `limit` mutants of those that are right; append to `out`.

    Of both only those that fall to this part, the `part[0]`-th of `part[1]`.
    """
    mine = slice(part[0], None, part[1])
    done = {record.id: record for record in read(out)}
    to_judge = {subject.name for subject in kernels[mine]}
    with LocalExecutor("cpu") as executor:
        right = []
        for subject in kernels:
            record = done.get(f"subject {subject.name}")
            if record is None:
                if subject.name not in to_judge:
                    continue
                record = _insist(partial(judge_subject, executor, subject))
                _append(out, record)
            if record.status is Status.CORRECT:
                right.append(subject)
            else:
                print(f"not right itself: {subject.name}: {record.reason} {record.message}")
        mutants = draw(right, seed, limit)[mine]
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
