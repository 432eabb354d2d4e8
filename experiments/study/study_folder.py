"""A study's folder: the plan in every version that was run, and a run directory for each cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field, ValidationError

from agent.loop.environment import revision
from agent.record.claim import locked
from agent.record.durable import write_durably
from agent.record.run_files import RunFiles
from evaluator.record import Record
from experiments.study.cell import cell_names
from experiments.study.plan import Contrast, Plan
from problems.errors import UsageError

FILE = "study.json"


class PlanVersion(Record):
    plan: Plan
    hash: str
    since: datetime
    turns: int
    commit: str | None
    """Of our own code; None: not known."""


class StudyRecord(Record):
    schema_: int = Field(default=1, alias="schema")
    versions: tuple[PlanVersion, ...] = Field(min_length=1)

    @property
    def plan(self) -> Plan:
        return self.versions[-1].plan

    def is_planned(self, contrast: Contrast) -> bool:
        """Whether the question was written down before there was a turn."""
        return any(contrast in v.plan.contrasts for v in self.versions if v.turns == 0)


@dataclass(frozen=True)
class StudyFolder:
    path: Path

    def record(self) -> StudyRecord | None:
        """What was planned; None where nothing was begun. Raises `UsageError`."""
        file = self.path / FILE
        try:
            return StudyRecord.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            raise UsageError(f"{file} can't be read: {what}; start in another folder") from error

    def turns(self, plan: Plan) -> int:
        """Turns recorded in the cells of a plan."""
        return sum(sum(1 for _ in RunFiles(self.path / name).turns()) for name in cell_names(plan))

    @contextmanager
    def claimed(self, plan: Plan) -> Iterator[None]:
        """Hold the folder for one process.

        Raises `UsageError` where another process has it, where it holds something else, or where
        `plan` leaves out a cell that an earlier version had.
        """
        self._refuse_other()
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            record = self.record()
            for version in record.versions if record else ():
                if gone := sorted(set(cell_names(version.plan)) - set(cell_names(plan))):
                    raise UsageError(
                        f"the plan has lost the cell {gone[0]}, which {self.path} was begun with;"
                        " put it back, or choose another folder with -o"
                    )
            yield

    def _refuse_other(self) -> None:
        if self.path.is_dir() and not (self.path / FILE).exists():
            there = [entry.name for entry in self.path.iterdir() if entry.name != ".lock"]
            if there:
                raise UsageError(
                    f"{self.path} is not empty and is no study ({there[0]} lies there); choose"
                    " another folder with -o"
                )

    def remember(self, plan: Plan) -> StudyRecord:
        """Write `plan` down as the latest version, unless it is that already."""
        before = self.record()
        if before is not None and before.plan == plan:
            return before
        new = PlanVersion(
            plan=plan,
            hash=plan.hash,
            since=datetime.now(UTC),
            turns=self.turns(plan),
            commit=revision(),
        )
        record = StudyRecord(versions=(*(before.versions if before else ()), new))
        write_durably(self.path / FILE, record.model_dump_json(indent=2) + "\n")
        return record
