"""Reports on studies and runs for a person, as plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from evaluator.command.command_line import Line
from experiments.analysis.equal_budget import NOUNS, UNITS
from experiments.analysis.measures import KEPT
from experiments.analysis.run_report import (
    AtK,
    FigureReport,
    Group,
    ProblemReport,
    RunReport,
)
from experiments.analysis.statistics import FEWEST, Interval
from experiments.analysis.table import DASH, Table, figure, gap, interval
from experiments.study.answer import answer_lines
from experiments.study.condition_report import ConditionReport
from experiments.study.curves import Curve
from experiments.study.study_report import StudyReport

SHOWN_BUDGETS = 4


@dataclass(frozen=True)
class Section:
    title: str
    lines: Sequence[str] = ()
    table: Table | None = None


@dataclass(frozen=True)
class ReportText:
    """A report on a study or a run, for a person."""

    title: str
    lines: Sequence[str]
    notes: Sequence[str]
    sections: Sequence[Section]

    def plain(self) -> Iterator[Line]:
        yield "bold", self.title
        yield from (("", line) for line in self.lines)
        yield from (("yellow", f"note: {note}") for note in self.notes)
        for section in self.sections:
            yield "", ""
            yield "bold", section.title
            yield from (("", line) for line in section.lines)
            yield from section.table.lines() if section.table else ()


def study_text(report: StudyReport) -> ReportText:
    finished = sum(cell.finished for cell in report.cells)
    of = sum(cell.of_problems for cell in report.cells)
    turns = sum(cell.turns for cell in report.cells)
    extent = (
        f"{len(report.cells)} cells, {finished} of {of} problems finished, {turns:,} turns;"
        f" plan {report.plan_hash}"
    )
    return ReportText(
        f"{report.study}: {report.question}",
        (*report.circumstances, extent),
        report.notes,
        tuple(_study_sections(report)),
    )


def run_text(report: RunReport) -> ReportText:
    facts = report.facts
    made = ", ".join(f"{count} {status}" for status, count in report.statuses.items())
    rival = f" Speedups are over eager ({facts.eager_flags})." if facts.eager_flags else ""
    made_on = (
        f"{facts.setting}; {len(report.problems)} problems, {facts.turns} calls: {made}.{rival}"
    )
    title = f"{facts.run}: {facts.title}"
    return ReportText(title, (made_on,), tuple(_run_notes(report)), tuple(_run_sections(report)))


def _run_notes(report: RunReport) -> Iterator[str]:
    facts = report.facts
    if facts.unbegun:
        yield f"no turn yet of {len(facts.unbegun)} problems ({', '.join(facts.unbegun[:4])})"
    short = [problem.problem for problem in report.problems if problem.calls < facts.budget]
    if short:
        yield f"fewer than {facts.budget} calls on {len(short)} problems"
    if facts.strategy == "agent":
        within = f" within {facts.limits}" if facts.limits else ""
        yield (
            f"a session: its budget is {facts.budget} evaluations a problem{within}; a run is"
            " comparable at as many calls, or at equal device seconds"
        )
    if len(facts.rungs) > 1:
        yield f"profiles come from different profilers ({', '.join(facts.rungs)})"


def _run_sections(report: RunReport) -> Iterator[Section]:
    yield Section("Problems", (), _problems(report.problems))
    figures = figure_table([""], [report.figures], [len(report.problems)])
    yield Section("Figures after the last call", (), figures)
    yield from _groups("level", [report.levels], [""])
    yield from _groups("category", [report.categories], [""])
    yield from _at_k([report.at_k], [report.facts.run])


def _problems(problems: Sequence[ProblemReport]) -> Table:
    """One row a problem: its best kernel, and what finding it cost."""
    compiled = any(problem.compile_speedup is not None for problem in problems)
    heading = ["problem", "correct", "best over eager", "verdict", "found at call"]
    heading += ["over compile"] * compiled
    scored = any(problem.sol_score is not None for problem in problems)
    heading += ["of the bound", *["SOL score"] * scored, "bottleneck", "tokens", "dollars", "wall"]
    rows = []
    for problem in problems:
        absent = "not timed" if problem.correct else "no correct kernel"
        cells = [
            problem.problem,
            f"{problem.correct}/{problem.calls}",
            interval(problem.speedup, "ratio", absent),
            problem.verdict or DASH,
            str(problem.best_call or DASH),
        ]
        if compiled:
            cells.append(figure(problem.compile_speedup, "ratio", DASH))
        cells.append(figure(problem.sol_fraction, "share", DASH))
        if scored:
            cells.append(DASH if problem.sol_score is None else f"{problem.sol_score:.2f}")
        cells += [
            problem.bottleneck or DASH,
            figure(problem.tokens, "tokens"),
            figure(problem.cost_usd, "usd"),
            figure(problem.seconds_wall, "seconds"),
        ]
        rows.append(tuple(cells))
    left = frozenset({0, 3, heading.index("bottleneck")})
    return Table(tuple(heading), rows, left)


def _study_sections(report: StudyReport) -> Iterator[Section]:
    if report.answers:
        yield Section("Answers, by second verdicts if any", tuple(answer_lines(report.answers)))
    for title, found in report.further.items():
        yield Section(title, tuple(answer_lines(found)))
    conditions = report.conditions
    if not conditions:
        return
    names = _names(conditions)
    problems = [each.problems for each in conditions]
    shares = figure_table(names, [each.fast_p for each in conditions], problems)
    yield Section("Share of problems", (), shares)
    others = [[f for f in each.figures if not f.is_share_of_problems] for each in conditions]
    figures = figure_table(names, others, problems)
    yield Section("Figures after the last call", (), figures)
    costs = figure_table(names, [each.costs for each in conditions], problems, DASH)
    yield Section("All spent over all reached", (), costs)
    yield from _groups("level", [each.levels for each in conditions], names)
    categories = [each.categories for each in conditions]
    yield from _groups("category", categories, names, {KEPT.key})
    yield from _budgets(report)
    yield from _at_k([each.at_k for each in conditions], names)
    yield _trajectories(conditions, names)
    yield from _advice(conditions, names)


def _names(conditions: Sequence[ConditionReport]) -> list[str]:
    """What a column is called: the condition, with its model where there are several."""
    one = len({each.model for each in conditions}) == 1
    return [each.condition if one else f"{each.model}, {each.condition}" for each in conditions]


def _rows(cells: Sequence[dict[str, str]]) -> list[tuple[str, ...]]:
    """A row for each label that any condition has; a dash where one lacks it."""
    labels = dict.fromkeys(label for each in cells for label in each)
    return [(label, *(each.get(label, DASH) for each in cells)) for label in labels]


def figure_table(
    names: Sequence[str],
    columns: Sequence[Sequence[FigureReport]],
    problems: Sequence[int],
    absent: str = "unknown",
) -> Table:
    """A column a condition or run, whose figures are over so many `problems` at most."""
    cells = [
        {
            found.label: interval(found.estimate, found.unit, absent)
            + f" ({found.problems} of {of})" * (found.problems != of)
            for found in figures
        }
        for figures, of in zip(columns, problems, strict=True)
    ]
    return Table(("figure and 95 % interval", *names), _rows(cells))


def _groups(
    kind: str, columns: Sequence[Sequence[Group]], names: Sequence[str], keys: Collection[str] = ()
) -> Iterator[Section]:
    """`keys`: only these figures."""
    if any(columns):
        cells = [
            {
                f"{kind} {group.name} ({group.problems}): {found.label}": _in_group(group, found)
                for group in groups
                for found in group.figures
                if not keys or found.figure in keys
            }
            for groups in columns
        ]
        table = Table((f"{kind} (problems)", *names), _rows(cells))
        yield Section(f"By {kind} (intervals from {FEWEST} problems on)", (), table)


def _in_group(group: Group, found: FigureReport) -> str:
    """Without an interval where the problems are too few for one to mean much."""
    if group.problems >= FEWEST or found.estimate is None:
        return interval(found.estimate, found.unit)
    return figure(found.estimate.value, found.unit)


def _budgets(report: StudyReport) -> Iterator[Section]:
    """The geometric mean at a few budgets in each currency."""
    kept = [curve for curve in report.curves if curve.figure == KEPT.key]
    for model, currency in dict.fromkeys((curve.model, curve.currency) for curve in kept):
        curves = [c for c in kept if (c.model, c.currency) == (model, currency)]
        count = len(curves[0].points)
        shown = [round(count / 2**power) - 1 for power in range(SHOWN_BUDGETS)]
        rows = []
        for place in sorted({each for each in shown if each >= 0}):
            points = [curve.points[place] for curve in curves]
            ended = sorted({round(100 * point.ended) for point in points})
            rows.append(
                (
                    figure(points[0].spent, "tokens" if currency == "calls" else UNITS[currency]),
                    *(_at(curve, place) for curve in curves),
                    f"{ended[0]} %" if len(ended) == 1 else f"{ended[0]} to {ended[-1]} %",
                )
            )
        heading = (
            NOUNS[currency],
            *(curve.name for curve in curves),
            "problems out of calls",
        )
        one = len({curve.model for curve in kept}) == 1
        of = "" if one else f" ({model})"
        title = f"At the same {NOUNS[currency]} a problem{of}: {KEPT.label}, by the search"
        yield Section(title, (), Table(heading, rows))


def _at(curve: Curve, place: int) -> str:
    point = curve.points[place]
    found = Interval(value=point.value, low=point.low, high=point.high)
    return gap(found, curve.unit) if curve.over else interval(found, curve.unit)


def _at_k(columns: Sequence[Sequence[AtK]], names: Sequence[str]) -> Iterator[Section]:
    for name, found in zip(names, columns, strict=True):
        if found:
            rows = [
                (
                    str(each.k),
                    interval(each.correct, "share"),
                    interval(each.faster, "share"),
                    interval(each.best, "ratio"),
                )
                for each in found
            ]
            heading = ("k", "pass@k: correct", "pass@k: > 1x", "best@k: speedup, at least 1")
            yield Section(f"Best of k samples: {name}", (), Table(heading, rows))


def _trajectories(conditions: Sequence[ConditionReport], names: Sequence[str]) -> Section:
    cells = []
    for each in conditions:
        went = each.trajectories
        column = {f"call 1: {status}": str(count) for status, count in went.first.items()}
        column["best found at call 1, 2, ..."] = ", ".join(map(str, went.best_found_at))
        column |= {
            found.label: f"{interval(found.estimate, found.unit)} ({found.problems})"
            for found in each.drafts
            if found.estimate is not None
        }
        column |= {f"{s.status}, then {s.next_status}": str(s.count) for s in went.steps}
        cells.append(column)
    table = Table(("counts, by the search; speedups (problems)", *names), _rows(cells))
    return Section("First drafts, and from turn to turn", (), table)


def _advice(conditions: Sequence[ConditionReport], names: Sequence[str]) -> Iterator[Section]:
    for each, name in zip(conditions, names, strict=True):
        if each.advice:
            rows = [
                (
                    rule.rule,
                    str(rule.given),
                    str(rule.followed),
                    interval(rule.hit_rate, "share", DASH),
                    figure(rule.time_change, "share", DASH),
                )
                for rule in each.advice
            ]
            heading = ("rule", "given", "followed", "figure moved as advised", "time, median")
            yield Section(f"What followed advice: {name}", (), Table(heading, rows))
