"""The cache under several hands: bounded, whole, read while others make room in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.builder import cache as caches
from evaluator.builder.cache import Cache
from evaluator.builder.work_folder import PREFIX
from evaluator.walls.environment import python_path


@pytest.fixture(autouse=True)
def _room_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_PUTS", 1)


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


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


def test_room_is_made_by_chance(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "_PUTS", 4)
    cache = Cache(tmp_path, 2**30, 8)
    sizes = []
    for number in range(400):
        cache.put(str(number), {"x": b"0"})
        sizes.append(len(entries(tmp_path)))
    assert 8 < max(sizes) < 100 and sizes.count(8) > 10


HAMMER = """
import random, sys
from pathlib import Path
from evaluator.builder import cache as caches

caches._PUTS = 1
cache, chosen = caches.Cache(Path(sys.argv[1]), 2**30, 8), random.Random(int(sys.argv[2]))
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
