"""Two runs over the same problems, at the same number of calls: who is better, as far as known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluator.record import Record
from experiments.analysis.common_ground import common_ground
from experiments.analysis.measures import BY_CALL, MEASURES, Measure, Unit
from experiments.analysis.outcomes import Outcomes, outcomes
from experiments.analysis.run_facts import RunFacts, load_run
from experiments.analysis.statistics import (
    DRAWS,
    LEVEL,
    Interval,
    Resamples,
    difference,
    interval_of,
)
from problems.errors import UsageError

Side = Literal["A", "B", "unclear", "unknown"]


class Row(Record):
    figure: str
    label: str
    unit: Unit
    better: Literal["higher", "lower"]
    call: int | None = None
    """After that many calls a problem; None: at the end."""
    problems: int
    a: Interval | None
    """None: unknown, since some call has no known price."""
    b: Interval | None
    difference: Interval | None
    """B minus A, paired over problems; B over A for a ratio."""
    chance: float | None
    verdict: Side
    """The better run; `unclear` where the paired difference does not say."""


class Comparison(Record):
    schema_: int = Field(default=1, alias="schema")
    a: RunFacts
    b: RunFacts
    problems: tuple[str, ...]
    calls: int
    level: float = LEVEL
    draws: int = DRAWS
    seed: int = 0
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    by_call: tuple[Row, ...]


def compare_runs(
    a: Path, b: Path, *, common: bool = False, calls: int | None = None, seed: int = 0
) -> Comparison:
    """Compare the runs at `a` and `b`.

    `common` leaves out problems that only one has; `calls` looks at the first calls only. Raises
    `UsageError` where the two can't be compared: other problems, budget, device or precision.
    """
    runs = load_run(a), load_run(b)
    if runs[0].facts.path == runs[1].facts.path:
        raise UsageError(f"{a} and {b} are the same run; name two")
    ground = common_ground(runs, common=common, calls=calls)
    sides = [outcomes(run.turns, ground.problems, ground.calls) for run in runs]
    resamples = Resamples.of(len(ground.problems), seed=seed)
    return Comparison(
        a=runs[0].facts,
        b=runs[1].facts,
        problems=ground.problems,
        calls=ground.calls,
        seed=seed,
        notes=ground.notes,
        rows=tuple(row for measure in MEASURES for row in _rows(measure, sides, resamples)),
        by_call=tuple(
            row for measure in BY_CALL for row in _rows(measure, sides, resamples, every_call=True)
        ),
    )


def _rows(
    measure: Measure,
    sides: Sequence[Outcomes],
    resamples: Resamples,
    *,
    every_call: bool = False,
) -> Iterator[Row]:
    tables = [measure.table(side) for side in sides]
    covered = measure.covered(*tables)
    if not covered.any():
        return
    if not covered.all():
        tables = [table[covered] for table in tables]
        resamples = Resamples.of(int(covered.sum()), seed=resamples.seed)
    calls = tables[0].shape[1]
    chosen = range(calls) if every_call else range(calls - 1, calls)
    first, second = (measure.estimates(table[:, chosen], resamples) for table in tables)
    for place, call in enumerate(chosen):
        known = not math.isnan(first[place].value + second[place].value)
        a, b = (table[:, call] for table in tables)
        shares = measure.unit == "share"
        gap = difference(a, b, resamples, shares=shares) if known else None
        yield Row(
            figure=measure.key,
            label=measure.label,
            unit=measure.unit,
            better=measure.better,
            call=call + 1 if every_call else None,
            problems=int(covered.sum()),
            a=interval_of(first[place]),
            b=interval_of(second[place]),
            difference=interval_of(measure.in_unit(gap.estimate)) if gap else None,
            chance=gap.chance if gap else None,
            verdict=_verdict(gap.sign, measure.better) if gap else "unknown",
        )


def _verdict(sign: int, better: Literal["higher", "lower"]) -> Side:
    if sign == 0:
        return "unclear"
    return "B" if (sign > 0) == (better == "higher") else "A"
