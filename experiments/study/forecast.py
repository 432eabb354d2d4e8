"""What a study would take: its calls, and the dollars that they can cost at most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.dry_run import plan as plan_of_a_run
from evaluator.command.command_line import Line
from evaluator.record import Record
from experiments.study.cell import cells_of
from experiments.study.plan import Plan
from experiments.study.study_run import check_plan


class CellForecast(Record):
    cell: str
    problems: int
    calls: int
    """At most, those that are recorded included."""
    recorded: int
    most_usd: float | None
    """None where a price, or the length of an answer, has no known limit."""


class Forecast(Record):
    question: str
    plan_hash: str
    cells: tuple[CellForecast, ...]


def forecast(plan: Plan, folder: Path) -> Forecast:
    """Work it out; nothing is asked, written or measured. Raises `UsageError` as a study does."""
    cells = cells_of(plan, folder)
    check_plan(plan, cells)
    planned = [(cell.name, plan_of_a_run(cell.resolution)) for cell in cells]
    found = (
        CellForecast(
            cell=name,
            problems=len(run.problems),
            calls=run.calls,
            recorded=run.recorded,
            most_usd=_capped(run.most_usd, plan.cell_usd, len(run.problems)),
        )
        for name, run in planned
    )
    return Forecast(question=plan.question, plan_hash=plan.hash, cells=tuple(found))


def _capped(usd: float | None, cap: float | None, problems: int) -> float | None:
    """A problem that has begun is finished: a cap may be passed by what one problem costs."""
    return usd if usd is None or cap is None else min(usd, cap + usd / problems)


def forecast_lines(found: Forecast) -> Iterator[Line]:
    from experiments.analysis.table import Table, figure

    yield "bold", f"{found.question} (plan {found.plan_hash})"
    counts = ("problems", "calls", "recorded")
    rows = [
        (each.cell, *(str(getattr(each, name)) for name in counts), figure(each.most_usd, "usd"))
        for each in found.cells
    ]
    yield from Table(("cell", *counts, "at most"), rows).lines()
    calls, recorded = (sum(getattr(c, name) for c in found.cells) for name in ("calls", "recorded"))
    known = [each.most_usd for each in found.cells if each.most_usd is not None]
    unknown = "; unknown for some cells" if len(known) < len(found.cells) else ""
    yield "bold", f"{len(found.cells)} cells, {calls} calls at most, {recorded} recorded"
    yield "", f"dollars: at most {figure(sum(known), 'usd')}{unknown}"
    yield "dim", "nothing was asked, written or measured"
