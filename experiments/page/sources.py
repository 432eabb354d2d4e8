"""What a page is about: a study with its cells, or runs; and what can be read of them now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.record.archive import unpacked
from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from experiments.runs import FILE, read_records, run_folders
from experiments.study.study_folder import FILE as STUDY_FILE
from problems.errors import UsageError

WATCHED = (FILE, "result.json", "confirmations/*.jsonl")


@dataclass(frozen=True)
class Sources:
    paths: tuple[Path, ...]
    study: Path | None
    seed: int = 0
    more_thresholds: tuple[float, ...] = ()
    """Of a study: values of p at which fast_p is reported, besides the usual ones."""

    @classmethod
    def at(
        cls,
        paths: Sequence[Path],
        *,
        seed: int = 0,
        more_thresholds: Sequence[float] = (),
    ) -> Sources:
        """Raises `UsageError` where a path is no folder, or a study is not alone."""
        paths = [unpacked(path) for path in paths]
        for path in paths:
            if not path.is_dir() and path.name != FILE:
                raise UsageError(f"there is no folder {path}; name a study or a run directory")
        studies = [path for path in paths if (path / STUDY_FILE).is_file()]
        if studies and len(paths) > 1:
            raise UsageError(
                f"{studies[0]} is a study, which has a page to itself; name it alone, or its cells"
            )
        study = studies[0] if studies else None
        return cls(tuple(paths), study, seed, tuple(more_thresholds))

    @property
    def title(self) -> str:
        return " and ".join(path.resolve().name for path in self.paths)

    def runs(self) -> list[Path]:
        found = [folder for path in self.paths for folder in _runs_at(path)]
        folders = {folder.resolve(): folder for folder in found}
        return [folder for folder in folders.values() if _has_turns(folder)]

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Changes when there is something new to show."""
        files = [file for folder in self.runs() for name in WATCHED for file in folder.glob(name)]
        if self.study is not None:
            files.append(self.study / STUDY_FILE)
        stats = [(str(file), file.stat()) for file in sorted(files)]
        return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def read_trajectories(folder: Path) -> dict[str, list[TurnRecord]]:
    """The turns of each problem of a run, by call. Raises `UsageError`."""
    found: dict[str, dict[tuple[int, int], TurnRecord]] = {}
    for record in RunFiles(folder).turns():
        found.setdefault(record.problem, {}).setdefault((record.sample, record.turn), record)
    return {
        problem: sorted(turns.values(), key=lambda record: record.call)
        for problem, turns in found.items()
    }


def _runs_at(path: Path) -> list[Path]:
    """Runs that are there; none yet is no mistake."""
    try:
        return run_folders(path)
    except UsageError:
        return []


def _has_turns(folder: Path) -> bool:
    file = folder / FILE
    return file.is_file() and any(True for _ in read_records(folder))
