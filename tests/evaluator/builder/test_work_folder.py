"""Work folders of dead processes are swept, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.builder import cache
from evaluator.builder.builder import Builder
from evaluator.builder.cache import Cache
from evaluator.builder.work_folder import PREFIX, sweep, work_folder
from evaluator.walls.environment import python_path

WORKS = """
import sys, time
from pathlib import Path
from evaluator.builder.work_folder import work_folder

with work_folder(Path(sys.argv[1])) as folder:
    (folder / "x").touch()
    print(folder.name, flush=True)
    time.sleep(300)
"""


@contextmanager
def working(parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with a work folder that was made two minutes ago."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKS, str(parent)],
        env=os.environ | {"PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            folder = parent / process.stdout.readline().strip()
            then = time.time() - 120.0
            os.utime(folder, (then, then))
            yield process, folder
        finally:
            process.kill()


def folders(parent: Path) -> list[Path]:
    return list(parent.glob(f"{PREFIX}*"))


def test_a_folder_is_gone_after_its_use(tmp_path):
    with work_folder(tmp_path) as folder:
        assert folders(tmp_path) == [folder] and folder.stat().st_mode & 0o777 == 0o755
    assert not folders(tmp_path)


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_has_is_not(tmp_path):
    with working(tmp_path) as (_, kept), working(tmp_path) as (dies, left):
        dies.kill()
        dies.wait()
        sweep(tmp_path)
        assert (kept / "x").exists() and not left.exists()


def test_a_folder_that_may_be_about_to_be_locked_is_left(tmp_path):
    (tmp_path / f"{PREFIX}new").mkdir()
    sweep(tmp_path)
    assert folders(tmp_path)


@pytest.mark.parametrize("place", ["", "objects", "libraries"])
def test_a_builder_sweeps_its_cache(tmp_path, monkeypatch, place):
    (tmp_path / place).mkdir(exist_ok=True)
    with working(tmp_path / place) as (dies, left):
        dies.kill()
    if place:
        monkeypatch.setattr(cache, "_PUTS", 1)
        Cache(tmp_path / place, 2**20).put("first", {"x": b""})
    else:
        Builder(tmp_path)._workshop(with_cuda=False)
    assert not left.exists()
