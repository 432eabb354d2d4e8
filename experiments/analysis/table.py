"""Figures as people read them, in columns of plain text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.command.command_line import Line
from experiments.analysis.measures import Unit
from experiments.analysis.statistics import Interval

DASH = "-"


@dataclass(frozen=True)
class Table:
    """Rows of cells below a heading; the first column is text, the others are figures."""

    heading: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: frozenset[int] = frozenset({0})
    """Columns that are aligned to the left."""

    def plain(self) -> Iterator[str]:
        """Aligned columns, two spaces apart, a line each."""
        lines = [self.heading, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.heading))]
        for line in lines:
            cells = [
                cell.ljust(width) if column in self.left else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            yield "  ".join(cells).rstrip()

    def lines(self) -> Iterator[Line]:
        """The same with the heading in bold."""
        heading, *rows = self.plain()
        yield "bold", heading
        yield from (("", row) for row in rows)


def figure(value: float | None, unit: Unit, absent: str = "unknown") -> str:
    """`67 %`, `1.97x`, `12,345`, `$0.012`, `34.1 s`; `absent` for None or NaN."""
    if value is None or math.isnan(value):
        return absent
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "ratio":
        return f"{bare(value, unit)}x"
    if unit == "usd":
        return f"${bare(value, unit)}"
    return f"{bare(value, unit)} s" if unit == "seconds" else bare(value, unit)


def bare(value: float, unit: Unit) -> str:
    """The number without its unit, as intervals hold it."""
    size = abs(value)
    if unit == "share":
        return f"{100 * value:.0f}"
    if unit == "tokens":
        return f"{value:,.0f}"
    if unit == "usd":
        return "0" if value == 0 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"
    digits = 2 if unit == "ratio" else 1
    return f"{value:.{digits}f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:,.0f}"


def interval(found: Interval | None, unit: Unit, absent: str = "unknown") -> str:
    """`1.97x [1.90, 2.04]`; a bound that does not exist is a dash."""
    if found is None:
        return absent
    return f"{figure(found.value, unit)} {_bounds(found, unit)}"


def gap(found: Interval | None, unit: Unit) -> str:
    """`+12 pt [-3, +27]`, a difference; a quotient, `x1.12 [0.97, 1.30]`, for a ratio."""
    if found is None:
        return ""
    return f"{gap_size(found.value, unit)} {_bounds(found, unit, '' if unit == 'ratio' else '+')}"


def gap_size(value: float, unit: Unit) -> str:
    """The same without an interval."""
    if unit == "ratio":
        return f"x{bare(value, unit)}"
    shown = figure(value, unit) if unit != "usd" else f"{bare(value, unit)} $"
    return f"{'+' if value > 0 else ''}{shown.replace(' %', ' pt')}"


def _bounds(found: Interval, unit: Unit, plus: str = "") -> str:
    shown = (
        DASH if bound is None else f"{plus if bound > 0 else ''}{bare(bound, unit)}"
        for bound in (found.low, found.high)
    )
    return f"[{', '.join(shown)}]"
