"""Drives all problems of a run through the state machine, several at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from agent.budget import Ledger, charge_for, charge_for_nothing
from agent.config import RunConfig
from agent.course import Course
from agent.deps import Deps, Profiler, settings_of
from agent.environment import record_environment, record_isolation, refuse_other_device
from agent.events import Event, Unwatched, Watch
from agent.llm.completion import ModelClient
from agent.machine import Machine
from agent.problem_check import ProblemCheck
from agent.prompt import Hardware
from agent.record import TurnSeconds
from agent.result import RunResult, Stop
from agent.store import RunStore
from agent.strategies import samples_of
from agent.templates import load_templates
from agent.twins import Twins
from evaluator.devices import describe, hardware_lines
from evaluator.executor.executor import Executor
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
    watch: Watch | None = None,
    stop: threading.Event | None = None,
    first_wait_s: float = 1.0,
) -> RunResult:
    """Take every problem through its turns until its budget is spent.

    Goes on where `store` says that an earlier command ended. `config.workers` graph runs are under
    way at a time, one for each (problem, sample). A problem on which our machine or the model's
    provider fails for good ends with that error told, and the others go on. Setting `stop` lets
    every turn in progress be finished and recorded, and begins no further one. `first_wait_s` is
    how long an evaluation waits before it is tried again when our own side broke. `place` is where
    `executor` judges, if that is not this machine.

    Raises `UsageError` where the run was begun on another device or with another version of a
    problem, and for what the provider refuses for good (`ModelRefusedError`); what is recorded by
    then stays.
    """
    _refuse_changed_problems(problems, store)
    device_name = place.device_name if place else describe(config.first_device).name
    refuse_other_device(store, device_name)
    hardware = hardware_of(config, place)
    templates = load_templates(config.prompts, config.prompts_hash)
    stop = stop or threading.Event()
    one_at_a_time = _OneAtATime(watch or Unwatched())
    ledger, twins = _ledger(problems, store), Twins(store)
    with Machine(store.path, first_wait_s) as machine:
        courses = [
            Course(
                Deps(
                    config=config,
                    problem=problem,
                    hardware=hardware,
                    templates=templates,
                    device_name=device_name,
                    client=client,
                    executor=executor,
                    check=ProblemCheck(executor, problem, settings_of(config)),
                    profiler=profiler,
                    store=store,
                    twins=twins,
                    ledger=ledger,
                    watch=one_at_a_time,
                    stop=stop,
                ),
                machine,
            )
            for problem in problems
        ]
        if any(course.has_work for course in courses):
            executor.prepare(config.workers, config.backend)  # while the model answers
            record_environment(store, device_name, config.executor)
        with ThreadPoolExecutor(config.workers, thread_name_prefix="turns") as pool:
            queue = _Queue(courses, samples_of(config))
            futures = [pool.submit(queue.work_off) for _ in range(config.workers)]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                stop.set()  # the turns in progress are finished, and no other begins
                raise
        results = tuple(course.result() for course in courses)
    record_isolation(store, results)
    interrupted = any(result.stop is Stop.INTERRUPTED for result in results)
    run = RunResult(run=store.path, problems=results, interrupted=interrupted)
    store.save_result(run)
    return run


def hardware_of(config: RunConfig, place: Place | None = None) -> Hardware:
    """The device that the prompt describes: the one named by `--hardware`, else the one at `place`,
    else the one at hand."""
    there = list(place.hardware) if place and not config.hardware else None
    first, *rest = there or hardware_lines(config.hardware or config.first_device)
    return Hardware(first, tuple(rest))


def _refuse_changed_problems(problems: Sequence[Problem], store: RunStore) -> None:
    for problem in problems:
        if store.log.standing(problem.id).problem_hash not in (None, problem.hash):
            raise UsageError(
                f"{problem.path} has changed since {store.path} was begun; choose another"
                " folder with -o, or start over with --redo"
            )


def _ledger(problems: Sequence[Problem], store: RunStore) -> Ledger:
    """What was spent before this command, turns in progress whose answer is paid for included."""
    ledger = Ledger()
    for problem in problems:
        ledger.charge(problem.id, store.log.standing(problem.id).spent)
    for key, draft in store.drafts():
        ledger.charge(key.problem, charge_for_nothing(draft.wasted))
        if not store.has_completion(draft.completion):
            continue
        answer = store.completion(draft.completion).completion
        judged = draft.evaluation.seconds if draft.evaluation else None
        seconds = TurnSeconds(
            model=answer.seconds,
            build=judged.build if judged else 0.0,
            judge=judged.judge if judged else 0.0,
            device=judged.device if judged else 0.0,
            profile=draft.profile_seconds,
        )
        ledger.charge(key.problem, charge_for(answer.usage, seconds))
    return ledger


class _Queue:
    """What is left to begin. Workers help themselves, so that a long queue takes no room."""

    def __init__(self, courses: Sequence[Course], samples: range) -> None:
        self._left = ((course, sample) for course in courses for sample in samples)
        self._lock = threading.Lock()

    def work_off(self) -> None:
        """Take one sample after another until none is left. Raises as `Course.take` does."""
        while (following := self._next()) is not None:
            course, sample = following
            course.take(sample)

    def _next(self) -> tuple[Course, int] | None:
        with self._lock:
            return next(self._left, None)


class _OneAtATime:
    """Passes events on from several threads, one call at a time."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lock = threading.Lock()

    def notice(self, event: Event) -> None:
        with self._lock:
            self._watch.notice(event)
