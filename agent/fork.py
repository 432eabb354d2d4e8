"""A run that begins with the first turns of another one, and goes on under other settings."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agent.config.run_config import RunConfig, Strategy
from agent.record.run_files import RunFiles
from agent.record.store import RunStore
from agent.record.turn import TurnRecord
from agent.record.turn_log import key_of
from problems.errors import UsageError


@dataclass(frozen=True)
class Fork:
    """Where a run leaves another one."""

    run: RunFiles
    turn: int
    """The first turn that is not taken over."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """`RUN@TURN`. Raises `UsageError`."""
        run, at, turn = text.rpartition("@")
        if not (at and run and turn.isdecimal() and int(turn) > 0):
            raise UsageError(
                f"--fork {text}: give a run directory and the first turn that is to differ, as in"
                " runs/NAME@3"
            )
        return cls(RunFiles(Path(run)), int(turn))

    @property
    def words(self) -> str:
        taken = "Turn 0 was" if self.turn == 1 else f"Turns 0 to {self.turn - 1} were"
        return f"{taken} taken over from {self.run.path}"

    def settings(self) -> dict[str, object]:
        """The run's, but for its folder."""
        return self.run.config().model_dump(mode="json", exclude={"output"})

    def check(self, config: RunConfig) -> None:
        """Raise `UsageError` where there is no such trajectory, or its kernels were not kept."""
        for strategy in (self.run.config().strategy, config.strategy):
            if strategy is not Strategy.REFINE:
                raise UsageError(f"--fork is for one trajectory a problem, and not for {strategy}")
        for problem in config.problems:
            turns = self._turns(problem)
            if len(turns) < self.turn:
                raise UsageError(
                    f"--fork: {self.run.path} has {len(turns)} turns of {problem} before turn"
                    f" {self.turn}; fork it earlier, or leave that problem out"
                )
            kernels = (turn.candidate for turn in turns if turn.candidate is not None)
            if lost := [each for each in kernels if not self.run.kernel_path(each).exists()]:
                raise UsageError(f"--fork: {self.run.path} has not kept the kernel {lost[0]}")

    def take_over(self, config: RunConfig, store: RunStore) -> None:
        """Put the turns before into `store`, as far as they are not there."""
        for problem in config.problems:
            if not store.rival_path(problem).exists():
                _copy(self.run.rival_path(problem), store.rival_path(problem))
            for turn in self._turns(problem):
                if key_of(turn) not in store.log:
                    self._copy_files(turn, store)
                    store.record(turn)

    def _turns(self, problem: str) -> list[TurnRecord]:
        found = (turn for turn in self.run.turns() if turn.problem == problem)
        return sorted((t for t in found if t.turn < self.turn), key=lambda turn: turn.turn)

    def _copy_files(self, turn: TurnRecord, store: RunStore) -> None:
        if turn.candidate is not None:
            _copy(self.run.kernel_path(turn.candidate), store.kernel_path(turn.candidate))
            profile = self.run.profile_folder(turn.candidate)
            if profile.is_dir():
                to = store.profile_folder(turn.candidate)
                shutil.copytree(profile, to, dirs_exist_ok=True)
        # Compact runs may lack these, and no later turn needs them.
        _copy(self.run.prompt_path(turn.prompt), store.prompt_path(turn.prompt))
        _copy(self.run.completion_path(turn.completion), store.completion_path(turn.completion))


def _copy(source: Path, to: Path) -> None:
    if source.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)
