"""`python -m tests.advice.table FOLDER`: the planted kernels' results as a Markdown table."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from tests.advice.case import Case
from tests.advice.outcome import Outcome, outcomes
from tools.advice.units import unit


def table(folder: Path) -> str:
    """A row a case, and what it comes to, under the present rules."""
    found = outcomes(folder)
    lines = [
        "| case | planted | first advice | named | gone in the twin | figure | time (us) |"
        " profiling (s) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_row(outcome) for outcome in found),
    ]
    seconds = [s for outcome in found for s in outcome.profile_seconds]
    lines += [
        "",
        f"Of {len(found)} cases the first advice names {sum(o.named for o in found)}; it is gone in"
        f" the twin of {sum(o.gone for o in found)}, the predicted figure moved in"
        f" {sum(o.moved is True for o in found)}, and all three hold for"
        f" {sum(o.shown for o in found)}.",
    ]
    if seconds:
        lines.append(
            f"A profile took {median(seconds):.1f} s in the middle, {max(seconds):.1f} s at most,"
            " on a host where other kernels were built, judged and profiled meanwhile."
        )
    return "\n".join(lines) + "\n"


def _row(outcome: Outcome) -> str:
    case: Case = outcome.case
    if outcome.problem:
        return f"| `{case.name}` | {case.fault} | {outcome.problem} | | | | | |"
    before, after = (r.result.latency_us for r in (outcome.planted, outcome.mended))
    first = outcome.planted.advice[0].rule if outcome.planted.advice else "none"
    advice = outcome.naming
    figure = ""
    if advice is not None:
        words = unit(advice.figure)
        then = outcome.mended.figures.get(advice.figure)
        shown = words.told(then) if then is not None else "n/a"
        figure = f"`{advice.figure}` {words.told(advice.before)} -> {shown}"
        figure += "" if outcome.moved else " (not as predicted)"
    cells = (
        f"`{case.name}`",
        case.fault,
        f"`{first}`",
        "yes" if outcome.named else "no",
        "yes" if outcome.gone else "no",
        figure,
        f"{before:.1f} -> {after:.1f}",
        " / ".join(f"{seconds:.1f}" for seconds in outcome.profile_seconds),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table(Path(sys.argv[1])), end="")
