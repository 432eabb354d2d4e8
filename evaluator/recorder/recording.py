"""A foreign file that holds a test is run once, behind walls, to learn what is called with what."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import torch
from pydantic import ValidationError

from evaluator.builder.enclosure import Enclosure
from evaluator.builder.work_folder import sweep, work_folder
from evaluator.record import Record
from evaluator.recorder.program import RecordedCall, UnrecordableError
from problems.cache_folder import keep
from problems.plain_file import open_plain

_SCRIPT = Path(__file__).with_name("confined.py")
_TIMEOUT_S = 240.0
_MEMORY_BYTES = 8 * 2**30
_MOST_BYTES = 2**26


class FunctionTask(Record):
    """What the confined process gets."""

    reference: str
    function: str
    test: str
    performance: str


class CallRecord(Record):
    """What is known of a function's calls."""

    test: tuple[RecordedCall, ...]
    sweep: tuple[RecordedCall, ...]
    ended: str
    """Why a file ended early; empty if none did."""


@dataclass
class Recording:
    """The walls that all tasks are recorded behind, each in a process of its own."""

    cache: Path
    timeout_s: float = _TIMEOUT_S
    _walls: Enclosure = field(init=False)

    def __post_init__(self) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)
        sweep(self.cache)
        shown = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *torch.__path__}
        # Only what Python needs: our own packages and the tasks stay out of sight.
        places = [Path(p) for p in sorted(shown) if Path(p).exists()]
        packages = Path(torch.__file__).parents[1]
        environment = {"PATH": os.defpath, "PYTHONPATH": str(packages), "CUDA_VISIBLE_DEVICES": ""}
        self._walls = Enclosure(
            self.cache, _outermost([*places, packages]), environment, memory_bytes=_MEMORY_BYTES
        )

    def record(self, task: FunctionTask) -> CallRecord:
        """As it was recorded before, or now. Raises `UnrecordableError`, and `OSError` where no
        process can be confined."""
        text = _SCRIPT.read_text() + task.model_dump_json()
        kept = self.cache / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        with contextlib.suppress(OSError, ValueError):
            return CallRecord.model_validate_json(kept.read_text())
        record = self._recorded(task)
        keep(kept, record.model_dump_json())
        return record

    def _recorded(self, task: FunctionTask) -> CallRecord:
        self._walls.prepare()
        with work_folder(self.cache) as folder:
            (folder / "task.json").write_text(task.model_dump_json())
            shutil.copy(_SCRIPT, folder)
            command = [sys.executable, "-B", _SCRIPT.name]
            done = self._walls.run(command, folder, self.timeout_s)
            if done.code is None:
                raise UnrecordableError(f"its test and its sweep took over {self.timeout_s:.0f} s")
            if done.code != 0:
                said = (done.output.strip().splitlines() or [f"exit code {done.code}"])[-1]
                raise UnrecordableError(f"recording it failed: {said[:200]}")
            try:
                with open_plain(folder / "record.json", _MOST_BYTES) as file:
                    return CallRecord.model_validate(json.loads(file.read(_MOST_BYTES)))
            except (OSError, ValueError, ValidationError, RecursionError) as error:
                said = str(error).splitlines()[0]
                raise UnrecordableError(f"what it left is no record: {said}") from None


def _outermost(places: list[Path]) -> list[Path]:
    """Without those that lie in others of them."""
    found: list[Path] = []
    for place in sorted({p.resolve() for p in places} | {*places}):
        if not any(place.is_relative_to(other) for other in found):
            found.append(place)
    return found
