"""What of a call's time is forward's own."""

from __future__ import annotations

import torch

from evaluator.judge.timing.samples import Samples, copy_cost_us, net_us, paired_ratios

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def samples(*calls: tuple[float, float]) -> Samples:
    """Calls by forward's time and the total one."""
    return Samples([total for _, total in calls], [forward for forward, _ in calls], [])


def test_work_that_is_put_off_until_the_copy_counts() -> None:
    eager = samples((100, 120), (100, 122), (100, 118))
    late = samples((10, 120), (10, 120), (10, 120))
    assert copy_cost_us(eager) == 20
    assert net_us(late, 20, 0, GPU) == [100, 100, 100]
    assert paired_ratios(late, eager, 0, GPU) == [1.0, 1.02, 1.0]


def test_a_short_call_takes_what_its_own_events_say() -> None:
    """The copy of a long eager call waits for its launch; that of a short one may not."""
    eager = samples((30, 42), (30, 42), (30, 42))
    short = samples((4, 9), (5, 11), (4, 12))
    assert net_us(short, copy_cost_us(eager), 0, GPU) == [4, 5, 4]


def test_on_a_cpu_the_cost_of_the_signal_is_taken_off() -> None:
    assert net_us(samples((100, 100), (101, 101)), 0, 8, CPU) == [92, 93]


def charged(mine: Samples, eager: Samples, usually_hidden_us: float | None = None) -> list[float]:
    return mine.with_left_out(mine.left_out_us(eager, usually_hidden_us)).total_us


def test_what_is_done_before_the_start_is_charged() -> None:
    def ready(*prepare_us: float) -> Samples:
        times = [100.0] * len(prepare_us)
        return Samples(times, list(times), list(times), list(prepare_us))

    eager = ready(*[200, 210, 220] * 10)
    assert charged(ready(*[215, 220, 225] * 10), eager) == [100.0] * 30
    assert min(charged(ready(*[500.0] * 30), eager)) >= 380
    # In two of three calls: the third one takes its own time.
    assert sorted(charged(ready(*[500.0, 500.0, 200.0] * 10), eager))[10] >= 380
    assert charged(ready(900.0, 900.0), ready(200.0, 200.0)) == [100.0, 100.0]


def test_what_only_the_judges_clock_sees_is_charged() -> None:
    def held(claimed_us: float, *wall_us: float) -> Samples:
        times = [claimed_us] * len(wall_us)
        return Samples(times, list(times), list(wall_us), [50.0] * len(wall_us))

    eager = held(100.0, *[130, 131, 133] * 10)
    assert charged(held(60.0, *[91, 92, 93] * 10), eager, 31.0) == [60.0] * 30
    forged = held(10.0, *[130, 131, 133] * 10)
    assert min(charged(forged, eager, 31.0)) >= 99
    # Where a call is not held, what is usual is longer.
    assert charged(forged, eager, 125.0) == [10.0] * 30
