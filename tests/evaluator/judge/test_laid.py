"""Inputs in an arena: covered until the start, whole afterwards."""

from __future__ import annotations

import pytest
import torch

from evaluator.judge.laid import Veil


@pytest.mark.parametrize(
    "spans",
    [
        [(512, 2**16), (2**17, 2**16)],
        [(0, 4)],
        [(0, 4), (512, 70), (1024, 1000)],
    ],
)
def test_every_tensor_is_covered_somewhere_and_whole_again(spans: list[tuple[int, int]]) -> None:
    torch.manual_seed(1)
    memory = torch.randint(1, 255, (2**18,), dtype=torch.uint8)
    before = memory.clone()
    veil = Veil(memory, spans)
    assert torch.equal(memory, before)
    veil.cover()
    for start, size in spans:
        assert not torch.equal(memory[start : start + size], before[start : start + size])
    untouched = torch.ones_like(memory, dtype=torch.bool)
    for start, size in spans:
        untouched[start : start + -(-size // 64) * 64] = False
    assert torch.equal(memory[untouched], before[untouched])
    veil.lift()
    assert torch.equal(memory, before)


def test_nothing_to_cover() -> None:
    memory = torch.ones(4096, dtype=torch.uint8)
    for spans in ([], [(0, 0)]):
        veil = Veil(memory, spans)
        veil.cover()
        veil.lift()
    assert bool((memory == 1).all())


def test_only_some_lines_of_large_tensors_are_covered() -> None:
    memory = torch.randint(1, 255, (2**24,), dtype=torch.uint8)
    before = memory.clone()
    Veil(memory, [(0, 2**23), (2**23, 2**22)]).cover()
    changed = (memory != before).view(-1, 64).any(dim=1)
    assert 500 < int(changed.sum()) <= 1024
    assert not bool(changed[3 * 2**16 :].any())
