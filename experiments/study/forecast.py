"""What a study would take: calls and dollars at most, and what is to be expected of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from agent.dry_run import plan as plan_of_a_run
from agent.record.result import Spent, charge_for
from agent.record.run_files import RunFiles
from evaluator.command.command_line import Line
from experiments.study.cell import cells_of
from experiments.study.plan import Plan
from experiments.study.study_run import check_plan


class CellForecast(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    cell: str
    problems: int
    calls: int
    """At most, those that are recorded included."""
    recorded: int
    first_prompt_tokens: int
    most_usd: float | None
    """None where a price, or the length of an answer, has no known limit."""
    expected_tokens: float | None
    """Of all its calls, from those of its recorded turns; None before the first."""
    expected_usd: float | None
    expected_device_hours: float | None


class Forecast(BaseModel):
    model_config = ConfigDict(frozen=True)

    question: str
    plan_hash: str
    cells: tuple[CellForecast, ...]


def forecast(plan: Plan, folder: Path) -> Forecast:
    """Work it out; nothing is asked, written or measured. Raises `UsageError` as a study does."""
    cells = cells_of(plan, folder)
    check_plan(plan, cells)
    told = []
    for cell in cells:
        run = plan_of_a_run(cell.resolution)
        spent = sum(
            (charge_for(turn.usage, turn.seconds) for turn in RunFiles(run.config.output).turns()),
            start=Spent(),
        )
        share = run.calls / run.recorded if run.recorded else None
        dollars = spent.cost_usd
        told.append(
            CellForecast(
                cell=cell.name,
                problems=len(run.problems),
                calls=run.calls,
                recorded=run.recorded,
                first_prompt_tokens=run.prompt_tokens,
                most_usd=_capped(run.most_usd, plan.cell_usd, len(run.problems)),
                expected_tokens=spent.tokens * share if share else None,
                expected_usd=dollars * share if share and dollars is not None else None,
                expected_device_hours=_device_seconds(spent) * share / 3600 if share else None,
            )
        )
    return Forecast(question=plan.question, plan_hash=plan.hash, cells=tuple(told))


def _device_seconds(spent: Spent) -> float:
    return spent.seconds.device + spent.seconds.profile


def _capped(usd: float | None, cap: float | None, problems: int) -> float | None:
    """A problem that has begun is finished: a cap may be passed by what one problem costs."""
    return usd if usd is None or cap is None else min(usd, cap + usd / problems)


def forecast_lines(found: Forecast) -> Iterator[Line]:
    from experiments.analysis.table import Table

    yield "bold", f"{found.question} (plan {found.plan_hash})"
    heading = (
        "cell", "problems", "calls", "recorded", "first prompt", "expected tokens",
        "expected $", "at most $", "device hours",
    )  # fmt: skip
    rows = [
        (
            each.cell,
            str(each.problems),
            str(each.calls),
            str(each.recorded),
            f"{each.first_prompt_tokens:,}",
            _figure(each.expected_tokens, ",.0f"),
            _figure(each.expected_usd, ",.2f"),
            _figure(each.most_usd, ",.2f"),
            _figure(each.expected_device_hours, ".2f"),
        )
        for each in found.cells
    ]
    first, *lines = Table(heading, rows).plain()
    yield "bold", first
    yield from (("", line) for line in lines)
    calls, recorded = (sum(getattr(c, name) for c in found.cells) for name in ("calls", "recorded"))
    usd = [each.most_usd for each in found.cells]
    most = f"${sum(u for u in usd if u is not None):,.2f}"
    unknown = "; unknown for some cells" if None in usd else ""
    yield "bold", f"{len(found.cells)} cells, {calls} calls at most, {recorded} recorded"
    yield "", f"dollars: at most {most}{unknown}"
    if not recorded:
        yield "dim", "what is to be expected is told once some turns are recorded"
    yield "dim", "nothing was asked, written or measured"


def _figure(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)
