"""Expected figures: NVIDIA's occupancy calculator's for compute capability 9.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from evaluator.collect.code.occupancy import best_occupancy, blocks_per_sm, occupancy_pct

HOPPER = (9, 0)


@pytest.mark.parametrize(
    ("registers", "shared_bytes", "block", "limiter", "pct"),
    [
        (24, 0, 256, "limit_warps", 100.0),
        (32, 0, 32, "limit_blocks", 50.0),
        (64, 0, 256, "limit_registers", 50.0),
        (65, 0, 256, "limit_registers", 37.5),
        (255, 0, 256, "limit_registers", 12.5),
        (32, 100 * 1024, 256, "limit_shared", 25.0),
    ],
)
def test_what_limits_a_kernel(registers, shared_bytes, block, limiter, pct) -> None:
    limits = blocks_per_sm(HOPPER, registers=registers, shared_bytes=shared_bytes, block=block)
    assert min(limits, key=lambda name: limits[name]) == limiter
    assert occupancy_pct(HOPPER, limits, block) == pct


def test_chips_differ() -> None:
    ada = blocks_per_sm((8, 9), registers=32, shared_bytes=0, block=512)
    assert ada["limit_warps"] == 3
    assert blocks_per_sm((7, 5), registers=32, shared_bytes=0, block=32)["limit_blocks"] == 16


@given(
    registers=some.integers(1, 255),
    shared_bytes=some.integers(0, 227 * 1024),
    block=some.integers(1, 32).map(lambda warps: 32 * warps),
)
def test_no_block_does_better_than_the_best(registers, shared_bytes, block) -> None:
    best, limits = best_occupancy(HOPPER, registers=registers, shared_bytes=shared_bytes)
    at = blocks_per_sm(HOPPER, registers=registers, shared_bytes=shared_bytes, block=block)
    assert occupancy_pct(HOPPER, at, block) <= best <= 100.0
    assert min(limits.values()) >= 1
