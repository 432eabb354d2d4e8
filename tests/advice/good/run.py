"""`python -m tests.advice.good.run --out FOLDER`: judges and profiles the good kernels on a GPU.

With `--kernels` and `--suite` also the published ones. Results are kept and resumed as those of
`tests.advice.run`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tests.advice.good.own import KERNELS
from tests.advice.good.published import published_jobs
from tests.advice.result import stored
from tests.advice.run import DEVICE, TIMING_SECONDS, run, waiting


def main() -> None:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--kernels", type=Path, help="a folder of kernels, named as KernelBench does"
    )
    parser.add_argument("--suite", type=Path, help="a folder of their problems")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="nothing begins later")
    arguments = parser.parse_args()
    if (arguments.kernels is None) != (arguments.suite is None):
        parser.error("--kernels and --suite go together")
    end = time.monotonic() + arguments.limit_s
    jobs = [kernel.job(DEVICE, TIMING_SECONDS) for kernel in KERNELS]
    if arguments.kernels is not None:
        jobs += published_jobs(arguments.kernels, arguments.suite, DEVICE, TIMING_SECONDS)
    names = {job.case for job in jobs}
    if unknown := set(arguments.only or ()) - names:
        parser.error(f"no such kernel: {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    asked = [job for job in jobs if not arguments.only or job.case in arguments.only]
    run(waiting(asked, stored(arguments.out)), arguments.out, end)


if __name__ == "__main__":
    main()
