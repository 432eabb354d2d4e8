"""A problem of a cell, and the order in which a study takes them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from experiments.study.cell import Cell
from problems.problem import Problem


@dataclass(frozen=True)
class Unit:
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
    def next(self, most: int = 1) -> Iterator[tuple[Unit, ...]]:
        """The next units of a cell that is free, `most` or fewer, held until the block ends.

        None are left where it gives none.
        """
        units = self._take(most)
        try:
            yield units
        finally:
            if units:
                with self._freed:
                    self._busy.discard(units[0].cell.name)
                    self._freed.notify_all()

    def _take(self, most: int) -> tuple[Unit, ...]:
        with self._freed:
            while self._left:
                free = (u.cell.name for u in self._left if u.cell.name not in self._busy)
                if (name := next(free, None)) is not None:
                    self._busy.add(name)
                    of_cell = (unit for unit in self._left if unit.cell.name == name)
                    units = tuple(islice(of_cell, most))
                    for unit in units:
                        self._left.remove(unit)
                    return units
                self._freed.wait()
            return ()
