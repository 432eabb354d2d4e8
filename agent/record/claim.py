"""Claiming a run directory: one writer at a time, and never over something else."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import yaml

from agent.config.identity import first_difference
from agent.config.run_config import RunConfig
from agent.record.durable import StoreError, disk_errors_told, is_leftover, write_durably
from agent.record.run_files import RunFiles
from problems.errors import UsageError

SESSION = "session"
"""The folder of an open session's socket."""
OURS = (
    *("config.yaml", "environment.json", "result.json", "turns.jsonl", "kernels", "prompts"),
    *("completions", "pending", "profiles", "best", "confirmations", "rivals", SESSION),
)
"""Everything that `--redo` removes."""
_WAIT_S = 0.5
"""Where a run is killed in the instant in which it starts git, the new process holds the lock until
git runs."""


def claim(config: RunConfig, *, redo: bool) -> TextIO:
    """Lock `config.output`, see that it may be used for `config`, and put `config.yaml` there.

    Returns the lock: held until it is closed or the process ends. Raises `UsageError` before
    anything of an earlier run is touched.
    """
    path = config.output
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; choose another folder with -o")
    files = RunFiles(path)
    present = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
    foreign = [name for name in present if name not in (*OURS, ".lock") and not is_leftover(name)]
    if foreign and not files.config_path.exists():
        raise UsageError(
            f"{path} is not empty and is not a run ({foreign[0]} lies there); choose another"
            " folder with -o"
        )
    if redo and files.config_path.exists() and not _is_of_a_run(files.config_path):
        raise UsageError(
            f"{files.config_path} is not that of a run, so nothing is removed; choose another"
            " folder with -o"
        )
    try:
        with disk_errors_told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            lock = locked(path)
    except StoreError as error:
        raise UsageError(str(error)) from error
    try:
        if redo:
            _clear(path)
        elif files.config_path.exists():
            check_same(files.config(), config)
        elif (path / "turns.jsonl").exists():
            raise UsageError(
                f"{path} holds turns but no config.yaml; choose another folder with -o, or start"
                " over with --redo"
            )
        text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
        if not files.config_path.exists() or files.config_path.read_text() != text:
            write_durably(files.config_path, text)
        return lock
    except BaseException:
        lock.close()
        raise


def _is_of_a_run(path: Path) -> bool:
    """Of any version of this program, even one that can't be read any more; not of another one."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return False
    return isinstance(content, dict) and {"strategy", "feedback", "model"} <= content.keys()


def locked(path: Path) -> TextIO:
    """The lock file, held until it is closed or the process ends. Not inherited across exec."""
    lock = (path / ".lock").open("a+")
    end = time.monotonic() + _WAIT_S
    while not (free := _taken(lock)) and time.monotonic() < end:
        time.sleep(0.01)
    if not free:
        lock.seek(0)
        holder = lock.read().strip()
        lock.close()
        raise UsageError(
            f"{path} is in use{f' by process {holder}' if holder else ''}; wait for it or end it,"
            " or choose another folder with -o"
        )
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _taken(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear(path: Path) -> None:
    with disk_errors_told(path):
        for name in OURS:
            entry = path / name
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)


def check_same(there: RunConfig, wanted: RunConfig) -> None:
    """Raise `UsageError` where a run goes on with other settings."""
    difference = first_difference(there, wanted)
    if difference is not None:
        key, old, new = difference
        raise UsageError(
            f"{wanted.output} was made with {key}={_shown(old)}, not {_shown(new)}; choose another"
            " folder with -o, or start over with --redo"
        )


def _shown(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
