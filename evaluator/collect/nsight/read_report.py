"""Reads a report of Nsight Compute: `python -m evaluator.collect.nsight.read_report NCU FOLDER`.

A process of its own, since the report was written beside a candidate. It is started before there
is one, and reads once its input ends. It prints a `KernelTrace`.
`ncu --import` is called twice: no call prints more than one page, the figures of all kernels are on
the raw page, and the samples of each instruction on the source page.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from evaluator.collect.collected import KernelTrace
from evaluator.collect.nsight import source_page
from evaluator.collect.target.program import Program
from evaluator.collect.target.target import read_request
from evaluator.errors import ProfilerError

REPORT = "profile.ncu-rep"
_TIMEOUT_S = 3600.0
"""Whoever started this process ends it long before."""


def read_report(ncu: str, folder: Path) -> KernelTrace:
    """The kernels in the `REPORT` of the request in `folder`.

    The candidate's hottest kernel comes with the lines at which it waits. Raises `ProfilerError`.
    """

    def page(*which: str) -> Program:
        reading = [ncu, "--import", str(folder / REPORT), "--csv", "--print-units", "base", *which]
        return Program(reading, folder, os.environ, name="ncu")

    source = read_request(folder).candidate.source
    raw = page("--page", "raw")
    guess = source_page.likely_kernel(source)
    ahead = page(*source_page.source_options(guess)) if guess is not None else None
    # It takes half a second, in which `ncu` reads.
    from evaluator.collect.nsight.raw_page import parse_raw

    trace = parse_raw(raw.finish(_TIMEOUT_S, whole=True))
    own = max(trace.own(source), key=lambda kernel: kernel.time_us, default=None)
    if own is None:
        return trace
    if ahead is None or own.name != guess:
        ahead = page(*source_page.source_options(own.name))
    # Figures are worth having without lines, which not every kernel has.
    text = ahead.finish(_TIMEOUT_S, whole=True, may_fail=True)
    metrics = own.metrics
    if (spills := source_page.only_spills(text)) is not None:
        local = sum(metrics.get(name) or 0.0 for name in ("local_loads", "local_stores"))
        metrics = metrics | {"spill_requests": local if spills else 0.0}
    lines = source_page.parse_source(text)
    known = source_page.waits_apart(metrics, lines)
    with_lines = own.model_copy(update={"lines": lines, "metrics": known})
    kernels = tuple(with_lines if kernel is own else kernel for kernel in trace.kernels)
    return trace.model_copy(update={"kernels": kernels})


if __name__ == "__main__":
    import evaluator.collect.nsight.raw_page  # noqa: F401  (it takes half a second)

    sys.stdin.read()
    try:
        print(read_report(sys.argv[1], Path(sys.argv[2])).model_dump_json())
    except ProfilerError as error:
        sys.exit(str(error))
