"""`python -m tests.honest.run [cpu|gpu] > RESULT.md`: judges the whole corpus several times over.

A line for each verdict goes to stderr. The page is to be committed: nothing may have been refused.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from evaluator.evaluation import Evaluation, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from tests.honest.corpus import HonestKernel, corpus

# A candidate that compiles at its first call may take its time on a loaded machine.
_PATIENCE = {"import_timeout_s": 120.0, "call_timeout_s": 120.0}
SETTINGS = {
    "cpu": Settings(device="cpu", timing_seconds=0.2, **_PATIENCE),
    "gpu": Settings(device="cuda:0", timing_seconds=0.4, **_PATIENCE),
}


def main() -> int:
    """0 if nothing was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", choices=SETTINGS, nargs="?", default="cpu")
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    settings = SETTINGS[arguments.place]
    judged: list[tuple[int, HonestKernel, Evaluation]] = []
    with LocalExecutor(settings.device) as executor:
        for number in range(1, arguments.times + 1):
            for kernel in corpus(arguments.place):
                evaluation = executor.evaluate(kernel.request(settings))
                judged.append((number, kernel, evaluation))
                print(f"{number} {kernel.name}: {_verdict(evaluation)}", file=sys.stderr)
    print(*_page(judged), sep="\n")
    return int(any(e.status is not Status.CORRECT for _, _, e in judged))


def _verdict(evaluation: Evaluation) -> str:
    return f"{evaluation.status} {evaluation.reason} {evaluation.message}"


def _page(judged: list[tuple[int, HonestKernel, Evaluation]]) -> Iterator[str]:
    last = judged[-1][2]
    yield "# The honest corpus, judged"
    yield ""
    yield f"* {datetime.now(UTC):%Y-%m-%d}, {last.device}, {os.cpu_count()} cores"
    yield f"* torch {last.conditions['torch']}, Python {last.conditions['python']}"
    yield f"* isolation: {', '.join(last.isolation)}"
    yield ""
    yield "| round | judged | correct | refused |"
    yield "| --- | --- | --- | --- |"
    for number in sorted({n for n, _, _ in judged}):
        counts = Counter(e.status is Status.CORRECT for n, _, e in judged if n == number)
        yield f"| {number} | {counts.total()} | {counts[True]} | {counts[False]} |"
    yield ""
    for number, kernel, evaluation in judged:
        if evaluation.status is not Status.CORRECT:
            yield f"* round {number}, `{kernel.name}`: {_verdict(evaluation)}"
    share, name = max(
        (c.error_ratio / c.error_ratio_limit, kernel.name)
        for _, kernel, e in judged
        if (c := e.correctness) and c.error_ratio is not None and c.error_ratio_limit
    )
    fits = Counter(e.weights for n, _, e in judged if n == 1)
    weights = ", ".join(f"{fit} {count}" for fit, count in sorted(fits.items()))
    yield f"Weights: {weights}. The largest error was {share:.0%} of what is allowed (`{name}`)."


if __name__ == "__main__":
    sys.exit(main())
