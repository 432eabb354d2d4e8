"""One run directory with a stand-in for everything beyond it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.config.run_config import RunConfig
from agent.loop.drive import drive
from agent.loop.judging import Profiler
from agent.record.events import Event
from agent.record.result import RunResult
from agent.record.run_files import RunFiles
from agent.record.store import open_store
from agent.record.turn import TurnRecord
from problems.problem import Problem
from tests.agent.stand_in import (
    PLACE,
    Diary,
    Listener,
    ScriptedClient,
    StandInExecutor,
    StandInProfiler,
    config,
    problem,
)


class World:
    """A run directory, and the stand-ins around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.diary = Diary(folder / "diary.txt")
        self.client: Any = ScriptedClient(self.diary)
        self.executor = StandInExecutor(self.diary)
        self.profiler: Profiler = StandInProfiler(self.diary)
        self.listener = Listener()
        self.stop = threading.Event()
        self.problem: Callable[[str], Problem] = problem

    def run(self, **settings: object) -> RunResult:
        run = self.config(**settings)
        with open_store(run) as store:
            return drive(
                run,
                [self.problem(name) for name in run.problems],
                client=self.client,
                executor=self.executor,
                profiler=self.profiler,
                store=store,
                place=PLACE,
                watch=self.listener,
                stop=self.stop,
                first_wait_s=0.0,
            )

    def config(self, **settings: object) -> RunConfig:
        return config(self.folder / "run", **settings)

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.folder / "run")

    def seen(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.listener.events if isinstance(event, kind)]

    def turns(self, problem: str = "first") -> list[TurnRecord]:
        """Of a problem, by call."""
        found = [turn for turn in self.files.turns() if turn.problem == problem]
        return sorted(found, key=lambda turn: turn.call)
