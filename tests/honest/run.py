"""`python -m tests.honest.run`: judges the whole corpus several times over, a line each.

The outcome is written beside this file, to be committed: nothing may have been refused.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from evaluator.evaluation import Evaluation, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from tests.honest.corpus import HonestKernel, corpus

RESULTS = {"cpu": Path(__file__).with_name("RESULT.md"), "gpu": Path(__file__).with_name("GPU.md")}
# A candidate that compiles at its first call may take its time on a loaded machine.
_PATIENCE = {"import_timeout_s": 120.0, "call_timeout_s": 120.0}
SETTINGS = {
    "cpu": Settings(device="cpu", timing_seconds=0.2, **_PATIENCE),
    "gpu": Settings(device="cuda:0", timing_seconds=0.4, **_PATIENCE),
}


def main() -> int:
    """Judge, print, write; 0 if nothing was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", choices=RESULTS, nargs="?", default="cpu")
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    settings = SETTINGS[arguments.place]
    kernels = corpus(arguments.place)
    begin, load, commit = time.monotonic(), os.getloadavg()[0], _commit()
    judged: list[tuple[int, HonestKernel, Evaluation]] = []
    with LocalExecutor(settings.device) as executor:
        for number in range(1, arguments.times + 1):
            for kernel in kernels:
                evaluation = executor.evaluate(kernel.request(settings))
                judged.append((number, kernel, evaluation))
                print(f"{number} {kernel.name}: {_told(evaluation)}", flush=True)
            minutes = (time.monotonic() - begin) / 60
            text = _result(judged, commit, minutes, (load, os.getloadavg()[0]))
            RESULTS[arguments.place].write_text(text)
    print(f"\n{text}")
    return int(any(e.status is not Status.CORRECT for _, _, e in judged))


def _told(evaluation: Evaluation) -> str:
    return f"{evaluation.status} {evaluation.reason} {evaluation.message}"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _result(
    judged: list[tuple[int, HonestKernel, Evaluation]],
    commit: str,
    minutes: float,
    load: tuple[float, float],
) -> str:
    last = judged[-1][2]
    lines = [
        "# The honest corpus, judged",
        "",
        f"`{' '.join(['python', '-m', 'tests.honest.run', *sys.argv[1:]])}` at commit {commit},"
        f" {datetime.now(UTC):%Y-%m-%d}, in {minutes:.0f} minutes.",
        "",
        f"* device: {last.device}, {os.cpu_count()} cores, load average {load[0]:.1f} at the"
        f" beginning and {load[1]:.1f} at the end",
        f"* torch {last.conditions['torch']}, Python {last.conditions['python']}",
        f"* isolation: {', '.join(last.isolation)}",
        "",
        "| round | judged | correct | refused |",
        "| --- | --- | --- | --- |",
    ]
    for number in sorted({n for n, _, _ in judged}):
        counts = Counter(e.status is Status.CORRECT for n, _, e in judged if n == number)
        lines.append(f"| {number} | {counts.total()} | {counts[True]} | {counts[False]} |")
    refused = [j for j in judged if j[2].status is not Status.CORRECT]
    if refused:
        lines += ["", "Refused:", ""]
        lines += [f"* round {n}, `{kernel.name}`: {_told(e)}" for n, kernel, e in refused]
    fits = Counter(e.weights for n, _, e in judged if n == 1)
    ratios = [
        (c.error_ratio / c.error_ratio_limit, kernel.name)
        for _, kernel, e in judged
        if (c := e.correctness) and c.error_ratio is not None and c.error_ratio_limit
    ]
    share, name = max(ratios)
    weights = ", ".join(f"{fit} {count}" for fit, count in sorted(fits.items()))
    lines += [
        "",
        f"Weights: {weights}. The largest error was {100 * share:.0f} % of what is allowed"
        f" (`{name}`).",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
