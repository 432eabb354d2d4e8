"""Hardware counters of all kernels of one forward call, by Nsight Compute."""

from __future__ import annotations

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluator.cache_folder import cache_folder
from evaluator.collect.collected import Collected
from evaluator.collect.ncu_export import parse_hints, parse_raw, with_hints
from evaluator.collect.ncu_metrics import SECTIONS, names
from evaluator.collect.ncu_source import hottest_own, parse_source, source_options, with_lines
from evaluator.collect.target_process import run, run_under
from evaluator.collect.toolkit import find_tool
from evaluator.device_lock import ncu_lock
from evaluator.errors import ProfilerError

REPORT = "profile.ncu-rep"
_MOST_KERNELS = 200
"""A forward call with more launches is cut there: each launch is replayed a dozen times."""
_QUERY_TIMEOUT_S = 60.0


def find_ncu() -> Path | None:
    """The `ncu` on the path, of the CUDA toolkit, or of an installation of Nsight Compute."""
    return find_tool("ncu")


def collect_ncu(folder: Path, *, device_name: str, timeout_s: float, source: str = "") -> Collected:
    """Profile the request in `folder` with counters; the report stays there as `REPORT`.

    `source`: the candidate's, whose hottest kernel is told with the lines at which it waits. Raises
    `ProfilerError` where `ncu` is not installed, may not read counters, or fails.
    """
    ncu = find_ncu()
    if ncu is None:
        raise ProfilerError("ncu is not installed")
    wanted, unknown = names(known_metrics(ncu, device_name))
    report = folder / REPORT
    options = ["--export", str(report), "--force-overwrite"]
    # Compilers and the like that it starts run faster without ncu's libraries in them.
    options += ["--target-processes", "application-only"]
    options += ["--profile-from-start", "off", "--clock-control", "none"]
    options += ["--launch-count", str(_MOST_KERNELS), "--metrics", ",".join(wanted)]
    options += [option for section in SECTIONS for option in ("--section", section)]
    with ncu_lock():
        collected = run_under([str(ncu), *options], folder, timeout_s=timeout_s)
    if not report.is_file():
        raise ProfilerError("ncu profiled no kernel")
    begin = time.monotonic()

    def page(*which: str, may_fail: bool = False) -> str:
        command = [str(ncu), "--import", str(report), "--csv", "--print-units", "base", *which]
        return run(command, folder, timeout_s=timeout_s, whole=True, may_fail=may_fail)

    with ThreadPoolExecutor(2) as pool:
        details = pool.submit(page, "--page", "details")
        trace = parse_raw(page("--page", "raw"))
        if (own := hottest_own(trace, source)) is not None:
            # Figures are worth having without lines, which not every kernel has.
            lines = parse_source(page(*source_options(own), may_fail=True))
            trace = with_lines(trace, own.name, lines)
        trace = with_hints(trace, parse_hints(details.result()))
    missing = tuple(dict.fromkeys((*unknown, *trace.missing)))
    collected = collected.after({"import": time.monotonic() - begin})
    return collected.model_copy(update={"gpu": trace.model_copy(update={"missing": missing})})


def known_metrics(ncu: Path, device_name: str) -> frozenset[str] | None:
    """Base names of the metrics that this `ncu` knows for the devices here, asked once and cached.

    None where the question fails: then everything is asked for, and what is missing shows later.
    """
    stamp = f"{ncu.resolve()} {ncu.stat().st_mtime_ns} {device_name}"
    cache = cache_folder() / "ncu_metrics.json"
    try:
        stored = json.loads(cache.read_text())
        if stored["stamp"] == stamp:
            return frozenset(stored["names"])
    except (OSError, ValueError, KeyError):
        pass  # never asked, or by another version: ask again
    try:
        answer = subprocess.run(
            [str(ncu), "--query-metrics"],
            capture_output=True,
            text=True,
            timeout=_QUERY_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    found = parse_query(answer.stdout)
    if answer.returncode != 0 or not found:
        return None
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps({"stamp": stamp, "names": sorted(found)}))
    except OSError:
        pass  # a read-only home: asked again next time
    return found


def parse_query(text: str) -> frozenset[str]:
    """Metric names from what `ncu --query-metrics` prints: the first word of each row."""
    return frozenset(re.findall(r"^([a-z0-9]+__[a-z0-9_]+)\s", text, re.MULTILINE))
