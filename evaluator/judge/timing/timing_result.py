"""How long a candidate takes, and whether that is faster than its baselines: the record."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import torch

from evaluator.baseline import flags_words
from evaluator.evaluation import BaselineTiming, CallTiming, Timing, Verdict
from evaluator.judge.bounds.speed_of_light import Bounds
from evaluator.judge.bounds.work import Work
from evaluator.judge.timing.interval import (
    FEWEST_VALUES,
    VERDICT_CONFIDENCE,
    over_workers,
    speedup_verdict,
)
from evaluator.judge.timing.samples import copy_cost_us, net_us, paired_ratios
from evaluator.judge.timing.sampling import Sampling
from evaluator.judge.timing.samplings import Samplings
from evaluator.metrics import sol_score
from evaluator.protocol import RULES
from evaluator.settings import BaselineName, Settings

_MARGIN = {"cpu": 0.01, "cuda": 0.005}
_PAIRS_DIFFER = {"cpu": (0.02, 0.06), "cuda": (0.005, 0.05)}
"""One pair of workers does not show by how much pairs differ. So much is 95 and 99.5 % of what they
do, for identical code (`experiments/results/README.md`)."""
_RECURRENT_DIFFER = (0.06, 0.12)
"""The same where the reference calls a recurrent layer."""
_LAUNCH_BOUND = 1.3
"""Time as called over time on the device, or eager's over that of as many operators on one element:
the limit at which BackendBench leaves a problem out."""


def timing_of(
    samplings: Sequence[Sampling], bounds: Bounds, settings: Settings, work: Work
) -> tuple[Timing, list[str]]:
    """The record of a candidate's samplings, one for each of its workers, and what a reader should
    know about them. `work`: the reference's.
    """
    workers = Samplings(samplings, torch.device(settings.device))
    device, first = workers.device, workers.first
    notes: list[str] = []
    differ, within = (0.0, 0.0), VERDICT_CONFIDENCE
    if len(samplings) == 1:
        differ = _RECURRENT_DIFFER if work.is_recurrent else _PAIRS_DIFFER[device.type]
        # On a CPU calls of one pair differ by more than pairs do.
        within = 0.95 if device.type == "cuda" else VERDICT_CONFIDENCE
    latency = over_workers(workers.latencies_us(), differ=differ[0])
    baselines = {}
    if workers.restless:
        disturbed_share = workers.disturbed_blocks / workers.decisive_blocks
        said = ", ".join(f"{kind} {count}" for kind, count in workers.disturbed.items())
        notes.append(
            f"{100 * disturbed_share:.0f} % of the {workers.decisive_blocks} blocks of timed "
            f"calls were disturbed from outside ({said}): slower is the only verdict on speed"
        )
    for name in first.baselines:
        ratios = workers.ratios(name)
        verdict, ratio = speedup_verdict(ratios, _MARGIN[device.type], differ, within)
        if workers.restless and verdict is not Verdict.SLOWER:
            # A candidate can bring some of it about, and `slower` alone would be no gain.
            verdict = Verdict.UNCLEAR
        baselines[name] = BaselineTiming(
            latency_us=over_workers(workers.baseline_us(name)).value,
            speedup=ratio.value,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            verdict=verdict,
            pairs=workers.pairs(name),
            flags=flags_words(name, settings),
        )
    over_eager = baselines[BaselineName.EAGER]
    verdict = over_eager.verdict
    if verdict is Verdict.UNCLEAR and not workers.restless and samplings[-1].stopped == "time":
        notes.append(
            f"{over_eager.pairs} pairs of calls do not show which is faster: more would, with "
            f"--timing-seconds {2 * settings.timing_seconds:g}"
        )
    called = _called(workers, differ[0])
    launch_bound = over_eager.latency_us < _LAUNCH_BOUND * work.operators * first.cost.operator_us
    if launch_bound:
        notes.append(
            f"eager's {over_eager.latency_us:.1f} us are mostly the calling of its "
            f"{work.operators} operators: at these sizes a speedup shows how many are called, not "
            "how fast they are"
        )
    if called is not None:
        launch_bound = (
            called.latency_us > _LAUNCH_BOUND * latency.value
            or called.eager_us > _LAUNCH_BOUND * over_eager.latency_us
        )
        if launch_bound:
            notes.append(
                f"the host limits these calls: {over_eager.speedup:.3g}x on the device, "
                f"{called.speedup:.3g}x as called from Python ({called.latency_us:.1f} us, eager "
                f"{called.eager_us:.1f} us)"
            )
    notes += _clock_notes(first, settings)
    left_out_us = median(each.left_out_us for each in samplings)
    if left_out_us > 0:
        notes.append(
            f"{left_out_us:.0f} us of each call were left out of what the worker says that it "
            "takes, before its start or on the judge's own clock: they count as the kernel's"
        )
    wall_us = None
    if device.type == "cuda":
        wall_us = median(wall for each in samplings for wall in each.candidate.wall_us)
    bound_us = bounds.bound_us or None
    if bound_us is not None and latency.value < bound_us:
        ceilings = "the ceilings measured for this device are too low, or the caches helped"
        notes.append(
            f"faster than the {bound_us:.1f} us that the reference's own operations take at best, "
            f"so that is no bound: {'fewer do' if bounds.bytes_us < bound_us else ceilings}"
        )
        bound_us = None
    # The bound is that of the task's arithmetic, which PyTorch's default flags are not bound to.
    fastest_us = min(
        baseline.latency_us
        for name, baseline in baselines.items()
        if name is not BaselineName.DEFAULT_FLAGS
    )
    timing = Timing(
        verdict=verdict,
        latency_us=latency.value,
        latency_low_us=latency.low,
        latency_high_us=latency.high,
        speedup=over_eager.speedup,
        speedup_low=over_eager.speedup_low,
        speedup_high=over_eager.speedup_high,
        baselines=baselines,
        sol_fraction=bound_us / latency.value if bound_us else None,
        floor_us=bounds.floor_us,
        bound_us=bound_us,
        bound_rates=bounds.rates,
        attainable_us=bounds.attainable_us if bounds.attainable_us <= latency.value else None,
        sol_score=sol_score(latency.value, fastest_us, bound_us) if bound_us else None,
        calls=workers.blocks,
        workers=len(samplings),
        worker_speedups=tuple(map(median, workers.ratios(BaselineName.EAGER))),
        stopped=samplings[-1].stopped,
        disturbed_blocks=workers.disturbed_blocks,
        launch_bound=launch_bound,
        wall_latency_us=wall_us,
        called=called,
    )
    return timing, notes


def undecided(timing: Timing) -> Timing:
    """With no verdict over eager; a note gives the reason."""
    eager = timing.baselines[BaselineName.EAGER].model_copy(update={"verdict": Verdict.UNCLEAR})
    baselines = timing.baselines | {BaselineName.EAGER: eager}
    return timing.model_copy(update={"verdict": Verdict.UNCLEAR, "baselines": baselines})


def less(timing: Timing, factor: float) -> Timing:
    """With a lower end of the interval that is lower by `factor`, and no verdict where it holds 1
    then."""
    low = timing.speedup_low * factor
    eager = timing.baselines[BaselineName.EAGER].model_copy(update={"speedup_low": low})
    baselines = timing.baselines | {BaselineName.EAGER: eager}
    timing = timing.model_copy(update={"speedup_low": low, "baselines": baselines})
    return timing if low > 1.0 else undecided(timing)


def _called(workers: Samplings, differ: float) -> CallTiming | None:
    pairs, known = workers.called(FEWEST_VALUES), (workers.first.cost, workers.device)
    if not pairs:
        return None
    ratio = over_workers([paired_ratios(*pair, *known) for pair in pairs], differ=differ)
    mine, eager = (
        over_workers([net_us(pair[which], copy_cost_us(pair[1]), *known) for pair in pairs])
        for which in (0, 1)
    )
    return CallTiming(
        latency_us=mine.value,
        eager_us=eager.value,
        speedup=ratio.value,
        speedup_low=ratio.low,
        speedup_high=ratio.high,
    )


def _clock_notes(sampling: Sampling, settings: Settings) -> list[str]:
    if not settings.device.startswith("cuda") or RULES[settings.protocol].in_one_process:
        return []
    waits = "waits for the device in its forward, or makes more launches than the device can queue"
    if not sampling.held:
        return [f"eager {waits}: both are timed as they are called, launching included"]
    notes = []
    if None not in sampling.held:
        notes.append(
            f"the kernel {waits}: its time as called, launching and the way through the host "
            "included, is compared with the baselines' time on the device"
        )
    for name in sampling.baselines:
        if name not in sampling.held:
            notes.append(f"{name} {waits}: beside it both are timed as they are called")
    return notes
