"""Drives all problems of a run through the state machine, several at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from agent.config.run_config import RunConfig
from agent.loop.deduplication import Deduplication
from agent.loop.deps import Deps, settings_of
from agent.loop.environment import record_environment, record_isolation, refuse_other_device
from agent.loop.graph import Machine
from agent.loop.judging import Judging, Profiler
from agent.loop.nodes import seconds_of
from agent.loop.problem_check import ProblemCheck
from agent.loop.problem_run import ProblemRun
from agent.loop.problem_turns import Ledger, ProblemTurns
from agent.prompt.prompt import Hardware
from agent.record.completion import ModelClient
from agent.record.events import Display, Event
from agent.record.result import RunResult, Stop, charge_for, charge_for_wasted
from agent.record.store import RunStore
from agent.record.turn_log import TurnKey
from evaluator.executor.executor import Executor
from evaluator.hardware.devices import describe, hardware_lines
from problems.errors import UsageError
from problems.problem import Problem

if TYPE_CHECKING:
    from evaluator.executor.ray_judge import Place


def drive(
    config: RunConfig,
    problems: Sequence[Problem],
    *,
    client: ModelClient,
    executor: Executor,
    profiler: Profiler,
    store: RunStore,
    place: Place | None = None,
    watch: Display | None = None,
    stop: threading.Event | None = None,
    first_wait_s: float = 1.0,
    checks: Mapping[str, ProblemCheck] | None = None,
) -> RunResult:
    """Take every problem through its turns until its budget is spent.

    Goes on where `store` says that an earlier command ended. `config.workers` turns are under way
    at a time. A problem on which our machine or the model's provider fails for good ends with that
    error reported, and the others go on. Setting `stop` lets every turn in progress be finished and
    recorded, and begins no further one. `first_wait_s` is how long an evaluation waits before it is
    tried again when our own side broke. `place` is where `executor` judges, if that is not this
    machine. `checks`: of problems, by id, that several runs share.

    Raises `UsageError` where the run was begun on another device or with another version of a
    problem, and for what the provider refuses for good (`ModelRefusedError`); what is recorded by
    then stays.
    """
    stop = stop or threading.Event()
    machine = Machine(first_wait_s, profiles=config.shown_feedback.needs_profile)
    judging = Judging(executor, profiler, place)
    begun = begin(config, problems, client, judging, store, watch or Display(), stop, checks)
    problem_runs = [ProblemRun(deps, machine) for deps in begun]
    changed = begun[0].turns.changed
    if any(problem_run.turns.has_work for problem_run in problem_runs):
        if not config.is_in_rounds:
            executor.prepare(config.workers, config.backend)  # while the model answers
        record_environment(store, begun[0].device_name, config.executor)
    with ThreadPoolExecutor(2 * config.workers, thread_name_prefix="turns") as pool:
        queue = TurnQueue(problem_runs, changed)
        work = (queue.take_turns, queue.finish_problems)
        futures = [pool.submit(each) for each in work * config.workers]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()  # the turns in progress are finished, and no other begins
            raise
    results = tuple(problem_run.result() for problem_run in problem_runs)
    record_isolation(store, results)
    interrupted = any(result.stop is Stop.INTERRUPTED for result in results)
    run = RunResult(run=store.path, problems=results, interrupted=interrupted)
    store.save_result(run)
    return run


def begin(
    config: RunConfig,
    problems: Sequence[Problem],
    client: ModelClient,
    judging: Judging,
    store: RunStore,
    watch: Display,
    stop: threading.Event,
    checks: Mapping[str, ProblemCheck] | None = None,
) -> list[Deps]:
    """What the turns of each problem work with. Raises `UsageError` as `drive`."""
    for problem in problems:
        if store.log.progress(problem.id).problem_hash not in (None, problem.hash):
            raise UsageError(
                f"{problem.path}{' or its weights' if problem.weights else ''} has changed since"
                f" {store.path} was begun; choose another folder with -o, or start over with --redo"
            )
    executor, place = judging.executor, judging.place
    device_name = place.device_name if place else describe(config.first_device).name
    refuse_other_device(store, device_name)
    hardware = hardware_of(config, place)
    one_at_a_time = _OneAtATime(watch)
    ledger, deduplication = _ledger(problems, store), Deduplication(store)
    changed = threading.Condition()
    return [
        Deps(
            config=config,
            problem=problem,
            hardware=hardware,
            device_name=device_name,
            client=client,
            executor=executor,
            check=(checks or {}).get(problem.id)
            or ProblemCheck(executor, problem, settings_of(config), config.rival),
            profiler=judging.profiler,
            store=store,
            deduplication=deduplication,
            ledger=ledger,
            turns=ProblemTurns(config, problem.id, store, ledger, stop, changed),
            watch=one_at_a_time,
            stop=stop,
        )
        for problem in problems
    ]


def hardware_of(config: RunConfig, place: Place | None = None) -> Hardware:
    """The device that the prompt describes: the one at `place`, else the one at hand."""
    first, *rest = place.hardware if place else hardware_lines(config.first_device)
    return Hardware(first, tuple(rest))


def _ledger(problems: Sequence[Problem], store: RunStore) -> Ledger:
    """What was spent before this command, turns in progress whose answer is paid for included."""
    ledger = Ledger()
    for problem in problems:
        ledger.charge(problem.id, store.log.progress(problem.id).spent)
    for key, turn in store.pending_turns():
        ledger.charge(key.problem, charge_for_wasted(turn.wasted))
        if not store.has_completion(turn.completion):
            continue
        answer = store.completion(turn.completion).completion
        ledger.charge(key.problem, charge_for(answer.usage, seconds_of(turn, answer.seconds)))
    return ledger


class _OneAtATime(Display):
    def __init__(self, watch: Display) -> None:
        self._watch = watch
        self._lock = threading.Lock()

    def notice(self, event: Event) -> None:
        with self._lock:
            self._watch.notice(event)


class TurnQueue:
    """Hands out problems in their order, and more threads to one that has several turns ready.

    A thread waits where turns may become ready once others are recorded. Other threads finish
    problems: a second verdict may wait long, while turns of other problems use the device.
    """

    def __init__(self, problem_runs: Sequence[ProblemRun], changed: threading.Condition) -> None:
        """`changed` is that of the problems' turns."""
        self._open = dict.fromkeys(problem_runs, 0)
        """Problems that have not ended, with the number of threads at work on each."""
        self._ended: deque[ProblemRun] = deque()
        self._changed = changed

    def take_turns(self) -> None:
        """Take turns until no problem is left. What `ProblemRun.take` raises ends all threads."""
        while (following := self._next_turn()) is not None:
            problem_run, key = following
            try:
                problem_run.take(key)
            except BaseException:
                with self._changed:
                    self._open.clear()
                raise
            finally:
                with self._changed:
                    if problem_run in self._open:
                        self._open[problem_run] -= 1
                    self._changed.notify_all()

    def finish_problems(self) -> None:
        """Finish problems that have ended until no problem is left."""
        while (problem_run := self._next_ended()) is not None:
            problem_run.finish()

    def _next_turn(self) -> tuple[ProblemRun, TurnKey] | None:
        with self._changed:
            while self._open:
                for problem_run, threads in list(self._open.items()):
                    if (key := problem_run.turns.claim()) is not None:
                        self._open[problem_run] += 1
                        return problem_run, key
                    if threads == 0:
                        del self._open[problem_run]
                        self._ended.append(problem_run)
                        self._changed.notify_all()
                if self._open:
                    self._changed.wait()
            return None

    def _next_ended(self) -> ProblemRun | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._open)
            return self._ended.popleft() if self._ended else None
