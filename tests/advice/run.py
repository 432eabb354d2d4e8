"""`python -m tests.advice.run FILE [CASE ...]`: judges and profiles the planted kernels on a GPU.

FILE (`.jsonl.gz`) gets a line for each kernel, as `tests/data/advice/planted.jsonl.gz` has it.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluator.collect.collected import Collected
from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from tests.advice.case import SIDES, Case, Side
from tests.advice.measured import Measured
from tests.advice.planted import CASES
from tools.profile import profile

DEVICE = "cuda:0"
TIMING_SECONDS = 0.3


def run(cases: Sequence[Case]) -> Iterator[Measured]:
    """Both sides of each case. Raises `RuntimeError` where a kernel is not correct."""
    with LocalExecutor(DEVICE) as executor:
        for case in cases:
            for side in SIDES:
                yield _measured(case, side, executor)


def _measured(case: Case, side: Side, executor: LocalExecutor) -> Measured:
    request = case.request(side, DEVICE, TIMING_SECONDS)
    evaluation = executor.evaluate(request)
    if evaluation.status is not Status.CORRECT or evaluation.timing is None:
        raise RuntimeError(f"{case.name}, {side}: {evaluation.status}, {evaluation.message}")
    with tempfile.TemporaryDirectory() as name:
        found = profile(request, evaluation, keep=Path(name))
        collected = Collected.model_validate_json((Path(name) / "collected.json").read_text())
    return Measured(
        case=case.name,
        side=side,
        kernel=case.digest(side),
        own=tuple(kernel.name for kernel in found.kernels if kernel.own),
        latency_us=evaluation.timing.latency_us,
        bound_us=evaluation.timing.bound_us,
        attainable_us=evaluation.timing.attainable_us,
        collected=collected,
    )


def main(path: Path, names: Sequence[str]) -> None:
    with gzip.open(path, "wt") as lines:
        for measured in run([case for case in CASES if not names or case.name in names]):
            lines.write(measured.model_dump_json() + "\n")
            rules = [f"{piece.rule} {piece.gain:.0%}" for piece in measured.diagnosis.advice]
            print(measured.case, measured.side, f"{measured.latency_us:.1f} us", *rules, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
