"""What of a call's time is forward's own."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import torch

from evaluator.judge.timing.call_cost import CallCost
from evaluator.judge.timing.samples import Samples, copy_cost_us, net_us, paired_ratios

CPU, GPU = torch.device("cpu"), torch.device("cuda")
FREE = CallCost(0.0, 0.0)


def samples(*calls: tuple[float, float]) -> Samples:
    """Calls by forward's time and the total one."""
    return Samples([total for _, total in calls], [forward for forward, _ in calls], [])


def test_work_that_is_put_off_until_the_copy_counts() -> None:
    eager = samples((100, 120), (100, 122), (100, 118))
    late = samples((10, 120), (10, 120), (10, 120))
    assert copy_cost_us(eager) == 20
    assert net_us(late, 20, FREE, GPU) == [100, 100, 100]
    assert paired_ratios(late, eager, FREE, GPU) == [1.0, 1.02, 1.0]


def test_a_short_call_takes_what_its_own_events_say() -> None:
    """The copy of a long eager call waits for its launch; that of a short one may not."""
    eager = samples((30, 42), (30, 42), (30, 42))
    short = samples((4, 9), (5, 11), (4, 12))
    assert net_us(short, copy_cost_us(eager), FREE, GPU) == [4, 5, 4]


def test_on_a_cpu_the_cost_of_the_signal_is_taken_off() -> None:
    cost = CallCost(signal_us=8, operator_us=3)
    assert net_us(samples((100, 100), (101, 101)), 0, cost, CPU) == [92, 93]
    # Whose worker answers from code of its own may take less than the signal alone.
    assert net_us(samples((5, 5), (10, 10)), 0, cost, CPU) == [3, 3]


def charged(mine: Samples, eager: Samples, usually_hidden_us: float | None = None) -> list[float]:
    return mine.with_left_out(mine.left_out_us(eager, usually_hidden_us)).total_us


def ready(claimed_us: float, *prepare_us: float) -> Samples:
    times = [claimed_us] * len(prepare_us)
    return Samples(times, list(times), list(times), list(prepare_us))


def test_what_is_done_before_the_start_is_charged() -> None:
    eager = ready(100.0, *[200, 210, 220] * 10)
    assert charged(ready(100.0, *[215, 220, 225] * 10), eager) == [100.0] * 30
    assert min(charged(ready(20.0, *[500.0] * 30), eager)) >= 300
    assert charged(ready(100.0, 900.0, 900.0), ready(100.0, 200.0, 200.0)) == [100.0, 100.0]


def test_work_before_some_of_the_calls_gains_nothing() -> None:
    eager = ready(100.0, *[200.0] * 30)
    early, own = [20.0] * 20, [100.0] * 10
    mine = Samples(early + own, early + own, early + own, [300.0] * 20 + [200.0] * 10)
    assert median(charged(mine, eager)) >= 100


def held(claimed_us: float, *wall_us: float) -> Samples:
    times = [claimed_us] * len(wall_us)
    return Samples(times, list(times), list(wall_us), [50.0] * len(wall_us))


def test_what_only_the_judges_clock_sees_is_charged() -> None:
    eager = held(100.0, *[130, 131, 133] * 10)
    assert charged(held(60.0, *[91, 92, 93] * 10), eager, 31.0) == [60.0] * 30
    forged = held(10.0, *[130, 131, 133] * 10)
    assert min(charged(forged, eager, 31.0)) >= 99


def test_a_few_calls_in_which_nothing_is_done_gain_nothing() -> None:
    """Seven claims of a seventh, and two that are true because no work was done: not verified."""
    eager = held(100.0, *[400.0] * 9)
    mine = held(15.0, *[400.0] * 7, 315.0, 315.0)
    assert charged(mine, eager, 300.0) == [15.0] * 9
    mine = replace(mine, proves=[True] * 5 + [False] * 4)
    assert charged(mine, eager, 300.0) == [100.0] * 9


def test_calls_that_the_host_delays_are_not_charged() -> None:
    """As measured on an H100: most calls of a short kernel were seen some 20 to 400 us late."""
    late = held(12.0, *[311, 312, 311, 337, 341, 480, 512, 640, 725])
    assert charged(late, held(12.0, *[312] * 9), 300.0) == [12.0] * 9
