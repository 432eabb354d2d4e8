"""The metrics of all kernels: Nsight Compute's raw page, as data frames.

Only the process that reads reports (`read_report.py`) imports this: pandas takes half a second.
"""

from __future__ import annotations

import math
from io import StringIO
from typing import Any

import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from evaluator.collect.collected import CollectedKernel, KernelTrace
from evaluator.collect.kernel_name import base_name
from evaluator.collect.nsight.ncu_metrics import BUSIEST, QUANTITIES, Kind
from evaluator.errors import ProfilerError


def parse_raw(text: str) -> KernelTrace:
    """The kernels of a raw page (`--page raw --csv --print-units base`), one row a launch.

    Raises `ProfilerError` when there is no table, or no kernel in it.
    """
    launches = launch_frame(text)
    missing = tuple(str(name) for name in launches.columns[launches.isna().all()])
    if "time_us" in missing:
        raise ProfilerError("ncu's table holds no duration (gpu__time_duration)")
    frame = kernel_frame(launches)
    kernels = tuple(
        CollectedKernel(
            name=str(name),
            launches=int(row.pop("launches")),
            time_us=row.pop("time_us"),
            metrics={
                str(metric): None if math.isnan(value) else float(value)
                for metric, value in row.items()
            },
        )
        for name, row in zip(frame.index, frame.to_dict("records"), strict=True)
    )
    return KernelTrace(kernels=kernels, missing=missing)


def launch_frame(text: str) -> pd.DataFrame:
    """A row for each launch, by the kernel's name, and a column for each of `QUANTITIES`."""
    # Around and between the rows are ==PROF== and ==WARNING== lines and what the program printed.
    lines = [line for line in text.splitlines() if line.startswith('"')]
    heads = [n for n, line in enumerate(lines) if line.startswith('"ID",')]
    if not heads:
        raise ProfilerError("ncu printed no table")
    header, *rows = lines[heads[0] :]
    table = "\n".join([header, *(row for row in rows if row != header)])
    try:
        frame = pd.read_csv(StringIO(table), dtype=str)
    except pd.errors.ParserError as error:
        raise ProfilerError(f"ncu's table cannot be read: {str(error).strip()}") from None
    if "Kernel Name" not in frame or len(frame) < 2:
        raise ProfilerError("ncu profiled no kernel")
    launches = frame.iloc[1:]  # units come first
    every = dict.fromkeys(name for _, names in QUANTITIES.values() for name in names)
    metrics = launches.reindex(columns=[*every]).replace(r"[,\s]", "", regex=True)
    metrics = metrics.apply(pd.to_numeric, errors="coerce")
    metrics = metrics.where(metrics.abs() < math.inf)
    found = {
        quantity: metrics[[*names]].max(axis=1)
        if quantity in BUSIEST
        else metrics[[*names]].bfill(axis=1).iloc[:, 0]
        for quantity, (_, names) in QUANTITIES.items()
    }
    found["time_us"] = found["time_us"] / 1e3
    stalls = pd.DataFrame({name: found[name] for name in found if name.startswith("stall_")})
    shares = stalls.fillna(0.0).div(stalls.sum(axis=1), axis=0)
    found |= {str(name): shares[name] * found["warps_per_issue"] for name in shares}
    return pd.DataFrame(found).set_axis(launches["Kernel Name"].fillna("").map(base_name))


def kernel_frame(launches: pd.DataFrame) -> pd.DataFrame:
    """A row for each kernel, the slowest first; a column for each quantity, and `launches`."""

    def of(kind: Kind) -> list[str]:
        return [name for name, (combines, _) in QUANTITIES.items() if combines == kind]

    def by_kernel(frame: pd.DataFrame) -> DataFrameGroupBy[Any, Any]:
        return frame.groupby(level=0, sort=False)

    time_us = launches["time_us"].fillna(0.0)
    sums = by_kernel(launches[of("sum")]).sum(min_count=1)
    means = launches[of("mean")]
    weights = by_kernel(means.notna().mul(time_us, axis=0)).sum()
    weighted = by_kernel(means.mul(time_us, axis=0)).sum() / weights
    # `first` passes over launches without a value.
    longest_first = launches.iloc[(-time_us).argsort(kind="stable")]
    shapes = by_kernel(longest_first[of("shape")]).first()
    kernels = sums.join(weighted.where(weights > 0.0, by_kernel(means).mean())).join(shapes)
    shared = ["static_shared_bytes", "dynamic_shared_bytes"]
    kernels["shared_bytes"] = kernels[shared].sum(axis=1, min_count=1)
    kernels["launches"] = by_kernel(launches).size()
    kernels["time_us"] = kernels["time_us"].fillna(0.0)
    kernels = kernels[["launches", *QUANTITIES, "shared_bytes"]]
    return kernels.sort_values("time_us", ascending=False, kind="stable")
