"""What stops early, by noise as calls have it, and what that does to verdicts and intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from evaluator.evaluation import Status, Verdict
from evaluator.judge.timing.interval import median_interval, speedup_verdict
from evaluator.judge.timing.stopping_rule import early_stop
from evaluator.settings import Settings
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS

BLOCKS, RUNS, MARGIN = 100, 600, 0.01
Noise = Callable[[random.Random], float]
NOISES: dict[str, Noise] = {
    "1 %": lambda source: source.gauss(0, 0.01),
    "3 %": lambda source: source.gauss(0, 0.03),
    "10 %": lambda source: source.gauss(0, 0.1),
    "heavy tails": lambda source: source.gauss(0, 0.4 if source.random() < 0.15 else 0.03),
}


def timed(source: random.Random, ratio: float, noise: Noise, drift: float = 0.0):
    """Paired ratios until the timing stops, and why; halfway they grow by `drift`."""
    ratios: list[float] = []
    while len(ratios) < BLOCKS:
        later = drift if len(ratios) >= BLOCKS / 2 else 0.0
        ratios.append(ratio * math.exp(noise(source) + later))
        if len(ratios) % 2 == 0 and (
            why := early_stop(len(ratios), [ratios], Settings(), restless=False)
        ):
            return ratios, why
    return ratios, "time"


@pytest.mark.parametrize("ratio", [2.0, 5.0, 0.5])
@pytest.mark.parametrize(
    ("noise", "blocks"), [("1 %", 12), ("3 %", 13), ("10 %", 50), ("heavy tails", 30)]
)
def test_a_clear_kernel_is_timed_for_a_few_blocks(ratio, noise, blocks):
    source = random.Random(0)
    runs = [timed(source, ratio, NOISES[noise]) for _ in range(RUNS)]
    assert sum(why == "time" for _, why in runs) <= 0.02 * RUNS
    assert sum(len(ratios) for ratios, _ in runs) / RUNS <= blocks
    verdict = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
    assert all(speedup_verdict([ratios], MARGIN)[0] is verdict for ratios, _ in runs)
    intervals = [median_interval(ratios) for ratios, why in runs if why == "clear"]
    assert all(each.relative_width < 0.1 for each in intervals)
    assert sum(each.low <= ratio <= each.high for each in intervals) >= 0.93 * len(intervals)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ratio", [1.0, 1.005, 1.4, 1.5, 1 / 1.5])
def test_one_that_is_not_is_hardly_ever_stopped_as_clear(ratio, noise):
    """At most one in 200 by the bound, whatever the noise."""
    source = random.Random(1)
    runs = [timed(source, ratio, NOISES[noise]) for _ in range(RUNS)]
    assert sum(why == "clear" for _, why in runs) <= RUNS / 200


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ratio", [1.0, 1.005])
def test_an_equal_kernel_is_called_faster_or_slower_in_less_than_one_case_in_a_hundred(
    ratio, noise
):
    source = random.Random(4)
    runs = [timed(source, ratio, NOISES[noise])[0] for _ in range(RUNS)]
    told = [speedup_verdict([ratios], MARGIN)[0] for ratios in runs]
    assert sum(each in (Verdict.FASTER, Verdict.SLOWER) for each in told) <= 0.01 * RUNS


@pytest.mark.parametrize("drift", [0.04, -0.04])
def test_what_drifts_later_is_missed_by_no_more_than_it_drifts(drift):
    source = random.Random(3)
    for _ in range(RUNS):
        ratios, _ = timed(source, 2.0, NOISES["3 %"], drift)
        assert speedup_verdict([ratios], MARGIN)[0] is Verdict.FASTER
        assert abs(math.log(median_interval(ratios).value / 2.0)) < 0.04


def test_it_must_be_clear_beside_each_baseline_and_mostly_undisturbed():
    eager, compiled = [2.0, 2.03] * 6, [1.1, 1.13] * 6
    assert early_stop(12, [eager], Settings(), restless=False) == "clear"
    assert early_stop(12, [eager], Settings(), restless=True) is None
    assert early_stop(12, [eager, compiled], Settings(), restless=False) is None
    assert early_stop(12, [eager, []], Settings(), restless=False) is None
    assert early_stop(12, [eager], Settings(clear_width=0.01), restless=False) is None


@pytest.mark.parametrize("blocks", [12, 24])
def test_calls_after_the_first_ten_alone_stop_nothing(blocks):
    """The first ten are all verified."""
    any_width = Settings(relative_width=0, clear_width=9)
    for honest, expected in ((1.0, None), (5.0, "clear")):
        ratios = [honest] * 10 + [5.0] * (blocks - 10)
        assert early_stop(blocks, [ratios], any_width, restless=False) == expected


@pytest.mark.slow
def test_a_kernel_that_is_clearly_slower_takes_a_part_of_the_time(evaluate):
    sleeps = "import time\n" + SCALE_AND_BIAS.replace(
        "return torch.relu", "time.sleep(0.004)\n        return torch.relu"
    )
    slower = "import time\n" + HONEST.replace("return ", "time.sleep(0.016)\n        return ")
    for _ in range(3):  # Beside much other work, sleeps differ in length.
        evaluation = evaluate(slower, sleeps, timing_seconds=30.0)
        assert evaluation.status is Status.CORRECT, evaluation.message
        if evaluation.timing.stopped == "clear":
            break
    assert (evaluation.timing.stopped, evaluation.timing.verdict) == ("clear", Verdict.SLOWER)
    assert evaluation.timing.calls < 100
    assert evaluation.correctness.calls_judged - 3 >= 10
