"""The order of a study's units, and who works on which."""

from pathlib import Path
from threading import Barrier, Lock, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.study.cell import Cell, cells_of
from experiments.study.plan import Condition, Plan
from experiments.study.unit import Queue, in_order

PROBLEMS = ("level1_1_swish", "level1_7_rms_norm", "level2_13_swiglu")


@pytest.fixture(scope="module")
def cells() -> tuple[Cell, ...]:
    plan = Plan(
        question="?",
        settings={"problem": list(PROBLEMS), "device": "cpu"},
        conditions=tuple(map(Condition.parse, ("sample", "refine none", "refine G+E"))),
        seeds=(0, 1),
    )
    return cells_of(plan, Path("study"))


@given(stop=st.integers(min_value=0, max_value=18))
def test_what_a_stop_leaves_is_balanced(cells: tuple[Cell, ...], stop: int) -> None:
    done = in_order(cells)[:stop]
    for seed in (0, 1):
        of_seed = [unit for unit in done if unit.cell.seed == seed]
        counts = [
            sum(unit.cell.condition == cell.condition for unit in of_seed)
            for cell in cells
            if cell.seed == seed
        ]
        assert max(counts) - min(counts) <= 1


def test_every_problem_of_every_cell_comes_once(cells: tuple[Cell, ...]) -> None:
    units = [(unit.cell.name, unit.problem.id) for unit in in_order(cells)]
    assert sorted(units) == sorted((cell.name, name) for cell in cells for name in PROBLEMS)


@pytest.mark.parametrize("most", [1, 2])
def test_no_two_threads_work_on_one_cell(cells: tuple[Cell, ...], most: int) -> None:
    queue, lock, start = Queue(in_order(cells)), Lock(), Barrier(8)
    busy: set[str] = set()
    taken: list[tuple[str, str]] = []
    clashes: list[str] = []
    sizes: set[int] = set()

    def work() -> None:
        start.wait()
        while True:
            with queue.next(most) as units:
                if not units:
                    return
                (name,) = {unit.cell.name for unit in units}
                with lock:
                    if name in busy:
                        clashes.append(name)
                    busy.add(name)
                    taken.extend((name, unit.problem.id) for unit in units)
                    sizes.add(len(units))
                with lock:
                    busy.discard(name)

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
    assert max(sizes) == most
    assert len(taken) == len(set(taken)) == len(cells) * len(PROBLEMS)
