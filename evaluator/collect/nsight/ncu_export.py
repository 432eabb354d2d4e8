"""Reads the CSV that Nsight Compute prints: the raw page (metrics) and the details page (rules)."""

from __future__ import annotations

import csv
import math
import re
from itertools import zip_longest

from evaluator.collect.collected import CollectedKernel, Hint, KernelTrace
from evaluator.collect.nsight.ncu_metrics import QUANTITIES
from evaluator.errors import ProfilerError

# Scale to the base unit; times end as microseconds because their quantity is `time_us`.
_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_TIMES = {
    "ns": 1e-3, "nsecond": 1e-3, "nanosecond": 1e-3,
    "us": 1.0, "usecond": 1.0, "microsecond": 1.0,
    "ms": 1e3, "msecond": 1e3, "millisecond": 1e3,
    "s": 1e6, "second": 1e6,
}  # fmt: skip
_MAX_HINT = 400


def parse_raw(text: str) -> KernelTrace:
    """The kernels of a raw page (`--page raw`, one row a launch, units in the second row).

    Raises `ProfilerError` when there is no table, or no kernel in it.
    """
    table = _table(text)
    if len(table) < 2 or "Kernel Name" not in table[0]:
        raise ProfilerError("ncu profiled no kernel")
    units, *launches = table
    values: list[dict[str, float | None]] = []
    for row in launches:
        found: dict[str, float | None] = {}
        for quantity, (_, alternatives) in QUANTITIES.items():
            candidates = (number(row[name], units[name]) for name in alternatives if name in row)
            found[quantity] = next((v for v in candidates if v is not None), None)
        values.append(found)
    names = [base_name(row["Kernel Name"]) for row in launches]
    missing = tuple(q for q in QUANTITIES if all(value[q] is None for value in values))
    if "time_us" in missing:
        raise ProfilerError("ncu's table holds no duration (gpu__time_duration)")
    return KernelTrace(kernels=_grouped(names, values), missing=missing)


def parse_hints(text: str) -> dict[str, tuple[Hint, ...]]:
    """What ncu's own rules said, by kernel, from a details page; the largest estimate first."""
    found: dict[str, dict[str, Hint]] = {}
    for row in _table(text):
        if not row.get("Rule Name"):
            continue
        text_ = re.sub(r"\s*\(https?://[^)]*\)", "", row["Rule Description"])
        estimate = number(row.get("Estimated Speedup"), "%")
        hint = Hint(
            rule=row["Rule Name"],
            kind=row["Rule Type"],
            text=text_[:_MAX_HINT],
            speedup_pct=estimate,
        )
        found.setdefault(base_name(row["Kernel Name"]), {}).setdefault(hint.rule, hint)
    return {
        name: tuple(sorted(hints.values(), key=lambda hint: -(hint.speedup_pct or 0.0)))
        for name, hints in found.items()
    }


def with_hints(trace: KernelTrace, hints: dict[str, tuple[Hint, ...]]) -> KernelTrace:
    """The same trace, each kernel with what was said about it."""
    kernels = tuple(
        kernel.model_copy(update={"hints": hints.get(kernel.name, ())}) for kernel in trace.kernels
    )
    return trace.model_copy(update={"kernels": kernels})


def number(value: object, unit: str) -> float | None:
    """A figure with thousands separators, in its base unit (times in us); None for n/a."""
    text = str(value).replace(",", "").replace("\N{NO-BREAK SPACE}", "").strip().rstrip("%")
    try:
        figure = float(text)
    except ValueError:
        return None
    return figure * _scale(unit.strip()) if math.isfinite(figure) else None


def _scale(unit: str) -> float:
    base, _, per = unit.partition("/")
    if base.lower() in _TIMES and not per:
        return _TIMES[base.lower()]
    match = re.fullmatch(r"(?i)([kmgtp])(byte|hz|inst|sector|cycle|warp|thread|flop)s?", base)
    return _PREFIXES[match[1].lower()] if match else 1.0


def base_name(name: str) -> str:
    """A kernel's name without return type, namespace of templates' arguments, and parameters."""
    # Nsight Compute 2025.3 leaves the first bracket of `<unnamed>` out.
    for unnamed in ("(anonymous namespace)::", "<unnamed>::", "unnamed>::"):
        name = name.replace(unnamed, "")
    plain, depth = "", 0
    for char in name:
        if char == "<":
            depth += 1
        elif char == ">":
            depth = max(0, depth - 1)
        elif depth == 0:
            if char == "(":
                break
            plain += char
    words = plain.split()
    return words[-1] if words else name


def _table(text: str) -> list[dict[str, str]]:
    """The rows, each by the names of its columns."""
    lines = text.splitlines()
    # Before and between come ==PROF== and ==WARNING== lines and what the program printed.
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        raise ProfilerError("ncu printed no table")
    header = lines[start]
    rows = (line for line in lines[start + 1 :] if line.startswith('"') and line != header)
    try:
        names, *table = csv.reader([header, *rows])
    except csv.Error as error:
        raise ProfilerError(f"ncu's table cannot be read: {error}") from None
    if longer := [row for row in table if len(row) > len(names)]:
        said = f"{len(longer[0])} values in {len(names)} columns"
        raise ProfilerError(f"ncu's table cannot be read: {said}")
    return [dict(zip_longest(names, row, fillvalue="")) for row in table]


def _grouped(
    names: list[str], values: list[dict[str, float | None]]
) -> tuple[CollectedKernel, ...]:
    groups: dict[str, list[dict[str, float | None]]] = {}
    for name, value in zip(names, values, strict=True):
        groups.setdefault(name, []).append(value)
    kernels = []
    for name, launches in groups.items():
        metrics = {quantity: _combined(quantity, launches) for quantity in QUANTITIES}
        time_us = metrics.pop("time_us") or 0.0
        parts = [metrics[f"{kind}_shared_bytes"] for kind in ("static", "dynamic")]
        known = [part for part in parts if part is not None]
        metrics["shared_bytes"] = sum(known) if known else None
        kernels.append(
            CollectedKernel(name=name, launches=len(launches), time_us=time_us, metrics=metrics)
        )
    return tuple(sorted(kernels, key=lambda kernel: -kernel.time_us))


def _combined(quantity: str, launches: list[dict[str, float | None]]) -> float | None:
    kind = QUANTITIES[quantity][0]
    pairs = [
        (value, launch["time_us"] or 0.0)
        for launch in launches
        if (value := launch[quantity]) is not None
    ]
    if not pairs:
        return None
    if kind == "sum":
        return sum(value for value, _ in pairs)
    if kind == "shape":
        return max(pairs, key=lambda pair: pair[1])[0]
    weight = sum(time_us for _, time_us in pairs)
    if weight == 0.0:
        return sum(value for value, _ in pairs) / len(pairs)
    return sum(value * time_us for value, time_us in pairs) / weight
