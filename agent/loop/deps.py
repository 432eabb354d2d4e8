"""The live objects that the nodes of one problem's graph runs work with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.config.run_config import RunConfig
from agent.loop.deduplication import Deduplication
from agent.loop.judging import Profiler
from agent.loop.problem_check import ProblemCheck
from agent.loop.problem_turns import Ledger, ProblemTurns
from agent.prompt.prompt import Hardware
from agent.record.completion import ModelClient
from agent.record.events import Display
from agent.record.store import RunStore
from evaluator.executor.executor import Executor
from evaluator.settings import JudgeOptions, Settings
from problems.problem import Problem
from problems.sizes import SizeClass


@dataclass(frozen=True)
class Deps:
    """The graph's context for one problem. Never checkpointed."""

    config: RunConfig
    problem: Problem
    hardware: Hardware
    device_name: str
    """For records of turns that no device has judged."""
    client: ModelClient
    executor: Executor
    check: ProblemCheck
    """Runs before the first model call of this command."""
    profiler: Profiler
    store: RunStore
    deduplication: Deduplication
    ledger: Ledger
    turns: ProblemTurns
    watch: Display
    stop: threading.Event
    """Set: finish and record the turn in progress, then end."""
    clock: Callable[[], float] = field(default=time.monotonic)

    @property
    def settings(self) -> Settings:
        return settings_of(self.config)

    @property
    def reference(self) -> str:
        """The problem's source with the sizes that suit the device."""
        return self.problem.reference(SizeClass.of(self.config.first_device))


def settings_of(config: RunConfig) -> Settings:
    chosen = {name: getattr(config, name) for name in JudgeOptions.model_fields}
    return Settings(**chosen, device=config.first_device, timed_cases=config.search_cases)
