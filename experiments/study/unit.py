"""A problem of a cell, and the order in which a study takes them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from experiments.study.cell import Cell
from problems.problem import Problem


@dataclass(frozen=True)
class Unit:
    """One problem of one cell: all of its turns."""

    cell: Cell
    problem: Problem


def in_order(cells: Sequence[Cell]) -> list[Unit]:
    """By seed, then by problem, each in all cells before the next one begins.

    So what a stop leaves is balanced over models and conditions. Problems come shuffled, the same
    way each time, so that it holds all levels; which cell comes first changes from problem to
    problem.
    """
    units = []
    for seed in dict.fromkeys(cell.seed for cell in cells):
        of_seed = [cell for cell in cells if cell.seed == seed]
        problems = {p.id: p for cell in of_seed for p in cell.resolution.problems}
        for turn, name in enumerate(random.Random(0).sample(sorted(problems), len(problems))):
            first = turn % len(of_seed)
            units += [Unit(cell, problems[name]) for cell in (*of_seed[first:], *of_seed[:first])]
    return units


class Queue:
    """Hands out units to several threads, no two of one cell at a time: a run has one writer."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._left = list(units)
        self._busy: set[str] = set()
        self._freed = threading.Condition()

    @contextmanager
    def next(self) -> Iterator[Unit | None]:
        """The next unit whose cell is free, held until the block ends; None: none is left."""
        unit = self._take()
        try:
            yield unit
        finally:
            if unit is not None:
                with self._freed:
                    self._busy.discard(unit.cell.name)
                    self._freed.notify_all()

    def _take(self) -> Unit | None:
        with self._freed:
            while self._left:
                for place, unit in enumerate(self._left):
                    if unit.cell.name not in self._busy:
                        self._busy.add(unit.cell.name)
                        return self._left.pop(place)
                self._freed.wait()
            return None
