"""Which timed calls are verified, which blocks count, and what many disturbed ones come to."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from evaluator.evaluation import Status, Verdict
from evaluator.judge.bounds.speed_of_light import Bounds
from evaluator.judge.bounds.work import Work
from evaluator.judge.timing.call_cost import CallCost
from evaluator.judge.timing.disturbance import Disturbance
from evaluator.judge.timing.samples import Samples
from evaluator.judge.timing.sampling import Sampling
from evaluator.judge.timing.timing_result import less, timing_of, undecided
from evaluator.settings import BaselineName, Settings
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS

ON_CPU, ON_GPU = Settings(), Settings(device="cuda:0")
THREE = Work(0, 0, 0, operators=3)
NO_BOUNDS = Bounds(None, 0.0, 0.0, "measured", math.inf)


def samples(times: list[float]) -> Samples:
    return Samples(total_us=times, forward_us=list(times), wall_us=list(times))


def sampling(
    candidate_us: list[float], eager_us: list[float], disturbed_blocks: int = 0
) -> Sampling:
    return Sampling(
        candidate=samples(candidate_us),
        baselines={BaselineName.EAGER: samples(eager_us)},
        called={},
        left_out_us=0.0,
        hidden_us={None: 0.0, BaselineName.EAGER: 0.0},
        held=frozenset(),
        stopped="calls",
        cost=CallCost(signal_us=0.0, operator_us=20.0),
        narrowing_seconds=0.0,
        blocks=len(candidate_us) + disturbed_blocks,
        decisive_blocks=len(candidate_us) + disturbed_blocks,
        disturbed_blocks=disturbed_blocks,
        disturbed=Counter({Disturbance.STEAL: disturbed_blocks} if disturbed_blocks else {}),
        seen={},
    )


def test_a_few_disturbed_blocks_are_left_out_and_counted():
    timing, notes = timing_of([sampling([50.0] * 40, [100.0] * 40, 5)], NO_BOUNDS, ON_CPU, THREE)
    assert timing.verdict is Verdict.FASTER
    assert timing.speedup == 2.0
    assert timing.disturbed_blocks == 5
    assert timing.calls == 45
    assert timing.baselines[BaselineName.EAGER].pairs == 40
    assert not notes


def test_what_a_kernel_may_take_longer_than_it_says_lowers_the_interval():
    timing, _ = timing_of([sampling([50.0] * 40, [100.0] * 40)], NO_BOUNDS, ON_CPU, THREE)
    some, low = less(timing, 0.9), pytest.approx(0.9 * timing.speedup_low)
    assert some.speedup_low == some.baselines[BaselineName.EAGER].speedup_low == low
    assert (some.speedup, some.verdict) == (2.0, Verdict.FASTER)
    assert less(timing, 0.5).verdict is Verdict.UNCLEAR


@pytest.mark.parametrize(("bytes_us", "why"), [(1.0, "fewer do"), (80.0, "caches helped")])
def test_a_bound_that_a_kernel_passes_is_none(bytes_us, why):
    bounds = replace(NO_BOUNDS, bound_us=80.0, bytes_us=bytes_us)
    timing, notes = timing_of([sampling([50.0] * 40, [100.0] * 40)], bounds, ON_CPU, THREE)
    assert (timing.bound_us, timing.sol_fraction, timing.sol_score) == (None, None, None)
    assert [why in note for note in notes] == [True]
    timing, _ = timing_of([sampling([90.0] * 40, [100.0] * 40)], bounds, ON_CPU, THREE)
    assert timing.sol_fraction == pytest.approx(80 / 90)


def test_a_reference_that_only_calls_operators_is_labelled():
    for operators, bound in ((3, False), (4, True)):
        timing, notes = timing_of(
            [sampling([50.0] * 40, [100.0] * 40)],
            NO_BOUNDS,
            ON_CPU,
            replace(THREE, operators=operators),
        )
        assert timing.launch_bound is bound
        assert ["operators: at these sizes" in note for note in notes] == [True] * bound


@pytest.mark.parametrize(
    ("candidate_us", "verdict"),
    [(50.0, Verdict.UNCLEAR), (100.0, Verdict.UNCLEAR), (200.0, Verdict.SLOWER)],
)
def test_where_many_were_disturbed_it_is_slower_or_nothing(candidate_us, verdict):
    timing, notes = timing_of(
        [sampling([candidate_us] * 40, [100.0] * 40, 20)], NO_BOUNDS, ON_CPU, THREE
    )
    assert timing.verdict is verdict
    assert timing.baselines[BaselineName.EAGER].verdict is verdict
    assert "33 % of the 60 blocks" in notes[0]
    assert "steal 20" in notes[0]


def test_what_only_the_judges_clock_saw_is_told():
    hidden = replace(sampling([100.0] * 40, [100.0] * 40), left_out_us=90.0)
    timing, notes = timing_of([hidden], NO_BOUNDS, ON_CPU, THREE)
    assert timing.verdict is Verdict.SAME
    assert notes[0].startswith("90 us of each call were left out")


@pytest.mark.parametrize(
    ("called_us", "eager_called_us", "is_bound"),
    [(52.0, 105.0, False), (90.0, 270.0, True), (90.0, 105.0, True)],
)
def test_the_host_limits_calls_that_take_longer_than_the_device(
    called_us, eager_called_us, is_bound
):
    both = replace(
        sampling([50.0] * 40, [100.0] * 40),
        called={
            None: samples([called_us] * 9),
            BaselineName.EAGER: samples([eager_called_us] * 9),
        },
        held=frozenset({None, BaselineName.EAGER}),
    )
    timing, notes = timing_of([both], NO_BOUNDS, Settings(device="cuda:0"), THREE)
    assert timing.launch_bound is is_bound
    assert timing.called is not None
    assert timing.called.speedup == pytest.approx(eager_called_us / called_us)
    assert timing.speedup == 2.0
    assert [note.startswith("the host limits these calls: 2x on") for note in notes] == (
        [True] * is_bound
    )


def test_who_cannot_be_held_gains_nothing_by_it():
    """A kernel's time as called stands against device time; a baseline's against the same kind."""
    names = BaselineName.EAGER, BaselineName.COMPILE
    device = sampling([60.0] * 40, [50.0] * 40)
    mixed = replace(
        device,
        baselines=device.baselines | {BaselineName.COMPILE: samples([5000.0] * 40)},
        called={None: samples([60.0] * 9)} | {name: samples([120.0] * 9) for name in names},
        held=frozenset({BaselineName.EAGER}),
    )
    timing, notes = timing_of([mixed], NO_BOUNDS, Settings(device="cuda:0"), THREE)
    assert timing.verdict is Verdict.SLOWER
    assert timing.baselines[BaselineName.COMPILE].speedup == 2.0
    assert any(note.startswith("the kernel waits for the device") for note in notes)
    assert any(note.startswith("compile waits for the device") for note in notes)


def test_workers_that_differ_widen_the_interval():
    """Within each worker the times are steady; 1.05x on average, 1.00 to 1.10 by worker."""
    each = [sampling([100.0] * 12, [100.0 * ratio] * 12) for ratio in (1.0, 1.05, 1.1)]
    timing, _ = timing_of(each, NO_BOUNDS, ON_CPU, THREE)
    assert timing.speedup == pytest.approx(1.05, abs=0.001)
    assert timing.speedup_low < 0.95
    assert timing.speedup_high > 1.15
    assert timing.verdict is Verdict.UNCLEAR
    assert (timing.workers, timing.calls) == (3, 36)
    alone, _ = timing_of(each[2:], NO_BOUNDS, ON_CPU, THREE)
    assert alone.verdict is Verdict.FASTER


def test_few_pairs_that_leave_it_open_are_shown_so_with_what_to_do():
    few = sampling([100.0] * 9, [90.0, 91.0, *[310.0 + i for i in range(7)]])
    timing, notes = timing_of([replace(few, stopped="time")], NO_BOUNDS, ON_CPU, THREE)
    assert timing.verdict is Verdict.UNCLEAR
    assert timing.speedup_low <= 1.0 < timing.speedup < timing.speedup_high
    assert "9 pairs of calls do not show which is faster: more would, with --timing-seconds 1" in (
        notes
    )


def test_eager_slowed_by_a_kernel_leaves_no_verdict_beside_another_one():
    timing, _ = timing_of([sampling([100.0] * 20, [200.0] * 20)], NO_BOUNDS, ON_CPU, THREE)
    left = undecided(timing)
    assert timing.verdict is Verdict.FASTER
    assert {left.verdict, *(each.verdict for each in left.baselines.values())} == {Verdict.UNCLEAR}


@pytest.mark.parametrize(
    ("settings", "work", "one", "three"),
    [
        (ON_GPU, THREE, (1.04, 1.06), (1.002, 1.01)),
        (ON_CPU, THREE, (1.05, 1.07), (1.005, 1.02)),
        (ON_GPU, replace(THREE, is_recurrent=True), (1.1, 1.13), (1.002, 1.01)),
    ],
)
def test_of_one_pair_of_workers_more_is_asked(settings, work, one, three):
    for count, ratios in ((1, one), (3, three)):
        verdicts = []
        for ratio in ratios:
            each = [sampling([100.0] * 20, [100.0 * ratio] * 20)] * count
            timing, _ = timing_of(each, NO_BOUNDS, settings, work)
            verdicts.append(timing.verdict)
            assert timing.speedup_low < ratio < timing.speedup_high or count == 3
        assert verdicts[0] is not Verdict.FASTER and verdicts[1] is Verdict.FASTER


def test_a_candidate_is_timed_in_several_fresh_workers(evaluate):
    own = SCALE_AND_BIAS.replace("class Model(", "class ModelNew(")
    evaluation = evaluate(own, timing_seconds=1.0, relative_width=1e-9)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.timing.workers == 4
    assert evaluation.timing.verdict not in (Verdict.FASTER, Verdict.SLOWER)
    assert evaluate(HONEST, timing_seconds=0.3).timing.workers == 1


def test_what_is_wrong_in_another_worker_alone_is_refused(evaluate):
    """It is right in most processes."""
    wrong = HONEST.replace(
        "import torch\n", "import os\nimport torch\n\nWRONG = float(os.urandom(1)[0] < 100)\n", 1
    ).replace("return ", "return WRONG + ", 1)
    for _ in range(12):
        evaluation = evaluate(wrong, timing_seconds=1.0, relative_width=1e-9)
        if "another fresh worker" in evaluation.message:
            break
    assert evaluation.reason == "wrong_values", evaluation
    assert "another fresh worker" in evaluation.message


@pytest.mark.thorough
def test_a_state_from_call_to_call_is_timed_in_several_workers_too(evaluate):
    reference = (
        HONEST.replace("ModelNew", "Model").replace(
            "return ", "self.calls = getattr(self, 'calls', 0) + 1\n        return self.calls * ", 1
        )
        + SCALE_AND_BIAS[SCALE_AND_BIAS.index("ROWS,") :]
    )
    own = reference.replace("class Model(", "class ModelNew(")
    evaluation = evaluate(own, reference, timing_seconds=1.0, relative_width=1e-9, audit="always")
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.timing.workers == 4
