"""A foreign file that holds a test is run once, behind walls, to learn what is called with what."""

from __future__ import annotations

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
from problems.plain_file import open_plain

_SCRIPT = Path(__file__).with_name("confined.py")
_TIMEOUT_S = 240.0
_MEMORY_BYTES = 16 * 2**30
"""Of address space, of which PyTorch for CUDA takes a good part."""
_PROCESSES = 256
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
        packages = Path(torch.__file__).parents[1]
        python = (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())
        needed = {packages, *map(Path, python)}
        needed |= {place.resolve() for place in needed}
        # Only what Python needs: our own packages and the tasks stay out of sight.
        shown = [p for p in sorted(needed) if p.exists() and needed.isdisjoint(p.parents)]
        environment = {"PATH": os.defpath, "PYTHONPATH": str(packages), "CUDA_VISIBLE_DEVICES": ""}
        environment |= {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
        self._walls = Enclosure(self.cache, shown, environment, _MEMORY_BYTES, _PROCESSES)

    def record(self, task: FunctionTask) -> CallRecord:
        """Raises `UnrecordableError`, and `OSError` where no process can be confined."""
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
