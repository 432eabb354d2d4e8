"""The cache under several hands: bounded, whole, read while others make room in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.builder.cache import Cache
from evaluator.builder.work_folder import PREFIX
from evaluator.walls.environment import python_path


def entries(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if not each.name.startswith(".")]


def test_it_forgets_what_was_used_longest_ago(tmp_path):
    cache = Cache(tmp_path / "cache", max_bytes=2500)
    for number, name in enumerate("abc"):
        entry = cache.put(name, {"x": b"0" * 1000})
        os.utime(entry, (number, number))
    assert cache.get("a") is None and cache.get("b") is not None
    cache.put("d", {"x": b"0" * 1000})
    assert cache.get("c") is None and cache.get("d") is not None
    assert len(entries(tmp_path / "cache")) == 2


def test_an_entry_is_written_once_by_the_first_that_comes(tmp_path):
    cache = Cache(tmp_path / "cache", max_bytes=10**6)
    barrier = threading.Barrier(8)

    def put(number: int) -> bytes:
        barrier.wait()
        return (cache.put("same", {"x": bytes([number]) * 1000}) / "x").read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(put, range(8)))) == 1


def test_the_entry_put_last_is_kept_however_large_it_is(tmp_path):
    cache = Cache(tmp_path, max_bytes=1000)
    cache.put("small", {"x": b"0"})
    cache.put("large", {"x": b"0" * 5000})
    assert [entry.name for entry in entries(tmp_path)] == ["large"]


@pytest.mark.parametrize("bound", ["entries", "bytes"])
def test_it_is_bounded_though_not_every_put_looks_at_all_there_is(tmp_path, monkeypatch, bound):
    looks = []
    look = Cache._make_room
    monkeypatch.setattr(Cache, "_make_room", lambda cache: (looks.append(1), look(cache)))
    size = {"entries": 10, "bytes": 2**18}[bound]
    bounds = {"entries": (2**30, 80), "bytes": (80 * 2**18, 10_000)}[bound]
    # What one process puts counts for all of them.
    caches = [Cache(tmp_path, *bounds) for _ in range(4)]
    most = 0
    for number in range(400):
        caches[number % 4].put(str(number), {"x": bytes(size)})
        most = max(most, len(entries(tmp_path)))
    assert 70 <= most <= 80, "full, and never fuller"
    assert 20 <= len(looks) <= 60
    assert caches[0].get("399") is not None and caches[0].get("300") is None


HAMMER = """
import random, sys
from pathlib import Path
from evaluator.builder.cache import Cache

cache, chosen = Cache(Path(sys.argv[1]), 2**30, 8), random.Random(int(sys.argv[2]))
for _ in range(400):
    key = chosen.randrange(24)
    whole = {name: f"{key} {name}".encode() * 500 for name in "abcd"}
    if chosen.random() < 0.5:
        cache.put(str(key), whole)
    else:
        found = cache.read(str(key))
        assert found is None or found == whole, (key, found and sorted(found))
"""


def test_readers_find_all_or_nothing_while_others_make_room(tmp_path):
    hammers = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(tmp_path), str(seed)],
            env=os.environ | {"PYTHONPATH": python_path()},
        )
        for seed in range(4)
    ]
    assert [each.wait() for each in hammers] == [0] * 4
    assert len(entries(tmp_path)) <= 8
    assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_an_entry_that_is_half_gone_is_none(tmp_path, monkeypatch):
    """One that is renamed and whose first file is removed while it is read."""
    cache = Cache(tmp_path, 2**20)
    entry = cache.put("a", dict.fromkeys("xyz", b"0"))
    listed = os.scandir

    def scandir(folder):
        if isinstance(folder, int) and entry.exists():
            (gone := tmp_path / "gone").mkdir()
            (entry.rename(gone / "a") / "y").unlink()
        return listed(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert cache.read("a") is None
    assert not entry.exists(), "it went while it was read"


def test_what_is_used_meanwhile_is_not_removed(tmp_path, monkeypatch):
    """Another process uses an entry after the one that makes room has looked at it."""
    cache = Cache(tmp_path, 2**20, 2)
    for number, name in enumerate("ab"):
        os.utime(cache.put(name, {"x": b"0"}), (number, number))
    order = sorted

    def late(found):
        cache.get("a")
        return order(found)

    monkeypatch.setattr("evaluator.builder.cache.sorted", late, raising=False)
    cache.put("c", {"x": b"0"})
    monkeypatch.undo()
    assert cache.get("a") is not None and cache.get("b") is None
