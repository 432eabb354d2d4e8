"""Blocks of timed calls that something outside disturbed are noticed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from evaluator.judge.timing.disturbance import Disturbance, Reading, Watch, disturbances, watch

CORES = len(os.sched_getaffinity(0))
CALM = Reading(100.0, 5.0, 1.0, sm_clock_mhz=1980, processes=2)
LATER = replace(CALM, at_s=101.0)


class Script:
    """Readings that were written down beforehand."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings: Iterator[Reading] = iter(readings)

    def read(self, *, counts_processes: bool = True) -> Reading:
        reading = next(self._readings)
        return reading if counts_processes else replace(reading, processes=None)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, set()),
        ({"steal_s": 5.0 + 0.009 * CORES}, set()),
        ({"steal_s": 5.0 + 0.02 * CORES}, {Disturbance.STEAL}),
        ({"quota_s": 1.001}, {Disturbance.CPU_QUOTA}),
        ({"slowed": True}, {Disturbance.GPU_SLOWDOWN}),
        ({"sm_clock_mhz": 1965}, set()),
        ({"sm_clock_mhz": 1700}, {Disturbance.CLOCK_CHANGE}),
        ({"sm_clock_mhz": None}, set()),
        ({"processes": 3}, {Disturbance.OTHER_PROCESS}),
        ({"processes": 1}, set()),
        ({"processes": None}, set()),
    ],
)
def test_what_changed_between_two_readings_is_named(change, found):
    assert disturbances(CALM, replace(LATER, **change), usual=CALM) == found


def test_a_process_that_stays_disturbs_every_block_from_then_on():
    crowded = replace(CALM, processes=3)
    assert disturbances(crowded, crowded, usual=CALM) == {Disturbance.OTHER_PROCESS}


def test_a_process_that_is_expected_disturbs_nothing_and_one_more_does():
    with_ours, crowded = (replace(LATER, processes=count) for count in (3, 4))
    observer = Watch(Script([CALM, CALM, with_ours, with_ours, crowded]))
    observer.expect_another_process()
    observer.begin()
    assert not observer.end()
    observer.begin()
    assert observer.end() == {Disturbance.OTHER_PROCESS}


def test_a_watch_tells_what_disturbed_a_block_and_sums_up_the_clocks():
    slow = replace(LATER, steal_s=5.5, sm_clock_mhz=1200)
    observer = Watch(Script([CALM, CALM, LATER, LATER, slow, slow]))
    observer.begin()
    assert not observer.end()
    observer.begin()
    assert observer.end() == {Disturbance.STEAL, Disturbance.CLOCK_CHANGE}
    assert observer.seen() == {
        "timed_steal_s": 0.5,
        "timed_quota_s": 0.0,
        "timed_sm_clock_low_mhz": 1200,
        "timed_sm_clock_high_mhz": 1980,
    }


def test_a_device_does_not_feel_what_the_host_lost_once_all_is_enqueued():
    slow = replace(LATER, steal_s=5.5, quota_s=1.0, sm_clock_mhz=1200)
    observer = Watch(Script([CALM, LATER, slow]))
    observer.begin()
    assert observer.end(enqueued=True) == {Disturbance.CLOCK_CHANGE}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_a_device_can_be_read(device):
    with watch(device) as observer:
        observer.begin()
        observer.end()
        assert observer.seen()["timed_steal_s"] >= 0
        assert device == "cpu" or observer.seen()["timed_sm_clock_high_mhz"] > 100
