from __future__ import annotations

import time

import pytest
import torch

from experiments.bench.speed.utilization import Sample, mean_share, utilization_watch


def test_a_mean_begins_where_it_is_asked_to():
    samples = [Sample(1.0, 0.0), Sample(2.0, 0.5), Sample(3.0, 1.0)]
    assert mean_share(samples, 2.0) == 0.75
    assert mean_share(samples, 3.5) is None


def test_nothing_is_told_of_a_cpu():
    with utilization_watch(["cpu"]) as samples:
        time.sleep(0.3)
    assert samples == []


@pytest.mark.gpu
def test_a_device_at_work_is_told_from_an_idle_one():
    a = torch.rand(4096, 4096, device="cuda:0")
    torch.cuda.synchronize()
    time.sleep(1.5)  # what the device did before is out of the driver's period
    with utilization_watch(["cuda:0"]) as idle:
        time.sleep(1.5)
    with utilization_watch(["cuda:0"]) as busy:
        begin = time.monotonic()
        while time.monotonic() - begin < 3.0:
            a @ a
            torch.cuda.synchronize()
    quiet, loud = mean_share(idle, 0.0), mean_share(busy, begin + 1.5)
    assert quiet is not None and quiet < 0.2
    assert loud is not None and loud > 0.8
