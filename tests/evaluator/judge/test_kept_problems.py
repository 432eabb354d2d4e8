"""Which problems stay set up in a judge: the last ones, as far as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from evaluator.hardware import host_memory
from evaluator.judge import judge as judge_module
from evaluator.judge.context.judge_memory import JudgeMemory
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.judge import Judge
from tests.evaluator.made_requests import SCALE_AND_BIAS, evaluation_request


@pytest.fixture
def context_of(judge: Judge) -> Iterator[Callable[[int], ProblemContext]]:
    """The problem of that number, set up."""

    def set_up(number: int) -> ProblemContext:
        return judge.context_for(evaluation_request(reference=f"# {number}\n{SCALE_AND_BIAS}"))

    yield set_up
    judge._forget_contexts(keep=0)


@pytest.mark.thorough
def test_the_last_ones_are_kept(judge, context_of, monkeypatch) -> None:
    monkeypatch.setattr(judge_module, "MOST_PROBLEMS", 3)
    monkeypatch.setattr(judge_module, "free_share", lambda: 1.0)
    first, second, _ = map(context_of, (1, 2, 3))
    assert context_of(1) is first
    context_of(4)
    assert len(judge._contexts) == 3
    assert context_of(1) is first and context_of(2) is not second


def test_where_memory_is_short_only_as_many_as_it_takes(judge, context_of, monkeypatch) -> None:
    left: list[float] = [1.0] * 3
    monkeypatch.setattr(judge_module, "free_share", lambda: left.pop(0) if left else 0.2)
    kept = [context_of(number) for number in (1, 2, 3)]
    left[:] = [0.2, 0.3]
    assert context_of(3) is kept[2]
    assert list(judge._contexts.values()) == [kept[1], kept[2]], "the one used longest ago went"
    # And where nothing helps, the one in hand.
    assert context_of(2) is kept[1]
    assert list(judge._contexts.values()) == [kept[1]]


@pytest.mark.parametrize(("most", "is_enough", "kept"), [(1, True, 2), (4, True, 1), (4, False, 2)])
def test_others_make_room_for_two_pairs_of_workers_where_there_can_be_any(
    judge, context_of, monkeypatch, most, is_enough, kept
) -> None:
    monkeypatch.setattr(judge_module, "free_share", lambda: 1.0)
    monkeypatch.setattr(judge_module, "most_workers", lambda settings: most)
    first, second = map(context_of, (1, 2))
    limit = second.baselines.wanted_bytes(2)
    assert second.baselines.wanted_bytes(1) < limit
    monkeypatch.setattr(JudgeMemory, "has_free", lambda memory, size: size < limit)
    monkeypatch.setattr(JudgeMemory, "is_enough_for", lambda memory, size: is_enough)
    context_of(2)
    assert list(judge._contexts.values()) == [first, second][-kept:]


def test_on_a_gpu_half_of_its_memory_is_left(judge, monkeypatch) -> None:
    given_back: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(judge_module, "free_share", lambda: 1.0)
        patch.setattr(torch.cuda, "empty_cache", lambda: given_back.append(1))
        patch.setattr(judge, "device", torch.device("cuda:0"))
        for free, after, is_short, times in (
            (41, 41, False, 0),
            (39, 41, False, 1),
            (38, 39, True, 1),
        ):
            told = iter([(free, 80), (after, 80)])
            patch.setattr(torch.cuda, "mem_get_info", lambda device, told=told: next(told))
            assert judge._memory_is_short() is is_short
            assert len(given_back) == times, "what torch keeps goes first, and only where it must"
            given_back.clear()


def test_what_the_kernel_says_of_memory(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    assert host_memory.free_share(told) == 1.0
    told.write_text("MemTotal:       16 kB\nMemFree:   1 kB\nMemAvailable:    4 kB\nHugePages: 0\n")
    assert host_memory.free_share(told) == 0.25
    assert 0.0 < host_memory.free_share() <= 1.0
