"""What is wanted of the cache and leaves it just then is made again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.builder.cache import Cache
from evaluator.builder.handover import built_and_read
from evaluator.errors import BuilderError
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from tests.evaluator.builder.test_builder import BARE, source


@pytest.fixture
def leaving(monkeypatch) -> list[str]:
    """Whatever is read of an entry that has one of these files has just left the cache."""
    names = []
    get = Cache.get

    def get_late(cache: Cache, key: str) -> Path | None:
        entry = get(cache, key)
        if entry is not None and any((entry / name).exists() for name in names):
            shutil.rmtree(entry)
        return entry

    monkeypatch.setattr(Cache, "get", get_late)
    return names


def test_an_object_that_leaves_the_cache_is_compiled_again(builder, leaving):
    request = replace(BARE, cflags=("-DLEAVES",))
    assert builder.build(request).ok
    leaving.append("object.o")
    outcome = builder.build(replace(request, ldflags=("-lm",)))
    assert outcome.ok and not outcome.cached, outcome.log


def test_an_outcome_that_leaves_the_cache_is_found_again(builder, leaving):
    request = replace(BARE, cflags=("-DLEAVES_TOO",))
    assert builder.build(request).ok
    leaving.append("outcome.json")
    outcome = builder.build(request)
    assert outcome.ok and not outcome.cached and Path(outcome.library).exists()


@pytest.mark.parametrize("times", [0, 2, 3])
def test_a_library_that_leaves_the_cache_before_it_is_read_is_built_again(builder, times):
    left = []

    def build(request: BuildRequest) -> BuildOutcome:
        outcome = builder.build(request)
        if outcome.ok and len(left) < times:
            shutil.rmtree(Path(outcome.library).parent)
            left.append(outcome)
        return outcome

    if times == 3:
        with pytest.raises(BuilderError, match="bare left the build cache 3 times"):
            built_and_read(build, BARE, Path.read_bytes)
        return
    outcome, content = built_and_read(build, BARE, Path.read_bytes)
    assert outcome.ok and content[:4] == b"\x7fELF" and len(left) == times


def test_where_nothing_was_built_there_is_nothing_to_read(builder):
    broken = source("torch::Tensor f(torch::Tensor x) { return x * factr; }")
    outcome, content = built_and_read(builder.build, broken, Path.read_bytes)
    assert not outcome.ok and content is None
