"""Runs what is left of a study: every problem of every cell, several at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agent.config.run_config import RunConfig
from agent.job import (
    check_judging,
    check_spending,
    two_stage_interrupt,
)
from agent.llm.client import make_client
from agent.llm.pricing import most_it_can_cost
from agent.loop.deps import settings_of
from agent.loop.drive import drive
from agent.loop.judging import Judging, open_judging
from agent.loop.problem_check import ProblemCheck
from agent.record.completion import ModelClient
from agent.record.result import ProblemResult, Stop
from agent.record.store import RunStore, open_store
from experiments.study.cell import Cell, cells_of, chosen, drafts_model
from experiments.study.plan import Plan
from experiments.study.shared_work import SharedDrafts, SharedWork
from experiments.study.study_folder import StudyFolder
from experiments.study.study_view import StudyView
from experiments.study.unit import Queue, Unit, in_order
from problems.errors import UsageError


@dataclass(frozen=True)
class StudyResult:
    failed: Mapping[str, str]
    """Cells, or problems of cells (`CELL PROBLEM`), that ended with an error, and with which."""
    capped: tuple[str, ...]
    """Cells with problems that were not begun since a cap on dollars was reached."""
    interrupted: bool
    awaited: int
    """How many prompts wait for their answers."""

    @property
    def complete(self) -> bool:
        """Every problem of every cell has ended by itself."""
        return not (self.failed or self.capped or self.interrupted or self.awaited)


def check_plan(plan: Plan, cells: Sequence[Cell]) -> None:
    """Raise `UsageError` for a cell that couldn't be run, or a cap that couldn't be kept."""
    there = {problem.id for cell in cells for problem in cell.resolution.problems}
    for group, names in plan.groups.items():
        if absent := sorted(set(names) - there):
            raise UsageError(f"groups: {group}: the study has no problem {absent[0]}")
    for cell in cells:
        config = cell.resolution.config
        check_spending(config)
        is_priced = most_it_can_cost(config.model, 1, 1, 1, config.model_args) is not None
        capped = plan.cell_usd is not None or plan.total_usd is not None
        if capped and not is_priced and not config.allow_unpriced:
            raise UsageError(
                f"a cap in dollars needs a known price and {config.model} has none; add"
                " allow_unpriced: true to settings to count such calls as free"
            )
    check_judging(cells[0].resolution.config)


def run_study(plan: Plan, folder: Path, only: Sequence[str] = ()) -> StudyResult:
    """Take every cell of `plan` through its problems, or through what is left of them.

    All cells share the judge and its devices. As many turns are under way as the workers of a
    run; where there are fewer cells than workers, each cell works on several problems at a time.
    With `only`, patterns of names, other processes may work on the other cells.

    Raises `UsageError` before anything is written where the plan or the folder can't be used, and
    `InfrastructureError` where this machine fails.
    """
    cells = chosen(cells_of(plan, folder), only)
    check_plan(plan, cells)
    stop = threading.Event()
    with ExitStack() as stack:
        study = StudyFolder(folder)
        if only:
            _check_apart(plan, cells)
            with study.claimed(plan):
                study.remember(plan)
        else:
            stack.enter_context(study.claimed(plan))
        # The profiler starts with the judge, so a cell that needs it stands for all.
        profiled = [cell for cell in cells if _config(cell).shown_feedback.needs_profile]
        view = StudyView(sum(len(cell.resolution.problems) for cell in cells))
        judging = stack.enter_context(open_judging(_config([*profiled, *cells][0]), view.say))
        stores = {cell.name: stack.enter_context(open_store(_config(cell))) for cell in cells}
        study.remember(plan)
        clients = {cell.name: _client(_config(cell), stop) for cell in cells}
        if plan.share is not None:
            work = SharedWork(folder / "shared")
            judging = work.judging(judging)
            for cell in cells:
                drafts = _config(cell).model_copy(update={"model": drafts_model(plan, cell)})
                clients[cell.name] = SharedDrafts(
                    clients[cell.name], _client(drafts, stop), drafts.model, work
                )
        stack.enter_context(two_stage_interrupt(stop, view.say, at_once=lambda: None))
        return _StudyRun(plan, cells, stores, clients, judging, view, stop).go()


def _client(config: RunConfig, stop: threading.Event) -> ModelClient:
    return make_client(config.model, config.model_args, run_dir=config.output, stop=stop)


def _check_apart(plan: Plan, cells: Sequence[Cell]) -> None:
    """Raise `UsageError` for what processes that don't know of each other can't keep."""
    if plan.total_usd is not None:
        raise UsageError("--cell: total_usd counts all cells; leave it out, and set cell_usd")
    if plan.share is not None:
        raise UsageError("--cell: with share: drafts one process runs all cells; leave it out")
    if _config(cells[0]).rival != "none":
        raise UsageError(
            "--cell: each process would measure other times of PyTorch; set rival: none, or run"
            " all cells in one process"
        )


def _config(cell: Cell) -> RunConfig:
    return cell.resolution.config


class _StudyRun:
    def __init__(
        self,
        plan: Plan,
        cells: Sequence[Cell],
        stores: Mapping[str, RunStore],
        clients: Mapping[str, ModelClient],
        judging: Judging,
        view: StudyView,
        stop: threading.Event,
    ) -> None:
        self._plan, self._cells, self._stores, self._clients = plan, cells, stores, clients
        self._judging, self._view, self._stop = judging, view, stop
        self._queue = Queue(in_order(cells))
        self._checks = {
            problem.id: ProblemCheck(
                judging.executor, problem, settings_of(_config(cell)), _config(cell).rival
            )
            for cell in cells
            for problem in cell.resolution.problems
        }
        self._failed: dict[str, str] = {}
        self._capped: set[str] = set()
        self._awaited: set[str] = set()

    def go(self) -> StudyResult:
        workers = _config(self._cells[0]).workers
        threads = min(workers, len(self._cells))
        with ThreadPoolExecutor(threads, thread_name_prefix="cells") as pool:
            futures = [pool.submit(self._take_all, workers // threads) for _ in range(threads)]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self._stop.set()
                raise
        for cell in self._cells:
            self._save_result(cell)
        capped, awaited = tuple(sorted(self._capped)), len(self._awaited)
        return StudyResult(dict(self._failed), capped, self._stop.is_set(), awaited)

    def _take_all(self, workers: int) -> None:
        while not self._stop.is_set():
            with self._queue.next(workers) as units:
                if not units:
                    return
                self._take(units, workers)

    def _take(self, units: Sequence[Unit], workers: int) -> None:
        cell = units[0].cell
        if cell.name in self._failed:
            return
        begun = [unit for unit in units if not self._cap_is_reached(unit)]
        if len(begun) < len(units):
            self._capped.add(cell.name)
        if not begun:
            return
        for unit in begun:
            self._share_rival(unit)
        try:
            results = self._drive(cell, begun, workers, self._stop)
        except UsageError as error:
            # What its provider refuses for good, say: the other cells can go on.
            self._failed[cell.name] = str(error)
            self._view.say(f"{cell.name}: {error}")
            return
        for result in results:
            self._awaited.update(result.awaited)
            if result.stop is Stop.ERROR:
                self._failed[f"{cell.name} {result.problem}"] = result.error
            self._view.ended(cell, result)

    def _cap_is_reached(self, unit: Unit) -> bool:
        """Not where the problem has begun: its turns are finished."""
        if self._stores[unit.cell.name].log.progress(unit.problem.id).turns:
            return False
        cell, total = self._plan.cell_usd, self._plan.total_usd
        spent = {each.name: self._spent_usd(each) for each in self._cells}
        over = cell is not None and spent[unit.cell.name] >= cell
        return over or (total is not None and sum(spent.values()) >= total)

    def _spent_usd(self, cell: Cell) -> float:
        log = self._stores[cell.name].log
        return sum(log.progress(p.id).spent.priced_usd for p in cell.resolution.problems)

    def _share_rival(self, unit: Unit) -> None:
        """All cells' prompts show what the first one was told, however long ago."""
        store, problem = self._stores[unit.cell.name], unit.problem.id
        known = (each.rival(problem) for each in self._stores.values())
        if store.rival(problem) is None and (found := next(filter(None, known), None)):
            store.save_rival(problem, found)

    def _drive(
        self, cell: Cell, units: Sequence[Unit], workers: int, stop: threading.Event
    ) -> tuple[ProblemResult, ...]:
        return drive(
            _config(cell).model_copy(update={"workers": workers}),
            [unit.problem for unit in units],
            client=self._clients[cell.name],
            executor=self._judging.executor,
            profiler=self._judging.profiler,
            place=self._judging.place,
            store=self._stores[cell.name],
            watch=self._view.of(cell),
            stop=stop,
            checks=self._checks,
        ).problems

    def _save_result(self, cell: Cell) -> None:
        """`result.json` of the whole cell; each problem's drive has written its own alone."""
        if cell.name in self._failed:
            return
        nothing_more = threading.Event()
        nothing_more.set()
        self._drive(cell, [Unit(cell, p) for p in cell.resolution.problems], 1, nothing_more)
