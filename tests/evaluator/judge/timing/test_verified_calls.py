"""Which calls are verified, and how long a cheat that moves a worker's median stays undetected."""

import random

import pytest

from evaluator.judge.timing.verified_calls import VerifiedCalls

RUNS = 20_000


def drawn(calls: int, *, is_another: bool) -> list[bool]:
    verified = VerifiedCalls(is_another=is_another)
    return [verified.next() for _ in range(calls)]


def test_the_first_ten_calls_and_a_fifth_of_all_are_verified():
    for _ in range(200):
        found = drawn(100, is_another=False)
        assert all(found[:10]) and sum(found) >= 20
        assert sum(drawn(100, is_another=True)) >= 20


@pytest.mark.parametrize("calls", [6, 7, 8, 9, 10, 12, 16, 20, 24, 48])
def test_a_cheat_in_half_of_a_further_workers_calls_is_seen(calls):
    """It knows how many calls there will be, and which ones are verified least often."""
    runs = [drawn(calls, is_another=True) for _ in range(RUNS)]
    often = [sum(run[call] for run in runs) for call in range(calls)]
    order = sorted(range(calls), key=lambda call: (often[call], random.random()))
    wrong = order[: (calls + 1) // 2]
    undetected = sum(not any(run[call] for call in wrong) for run in runs)
    assert undetected <= 0.07 * RUNS
