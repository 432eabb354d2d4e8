"""Evaluations made by hand: with the times that a test asks for, and of failed builds."""

from __future__ import annotations

from evaluator.evaluation import (
    BaselineTiming,
    BuildReport,
    Correctness,
    DeviceMemory,
    Evaluation,
    Status,
    Timing,
    Verdict,
)
from evaluator.settings import BaselineName


def baseline(
    speedup: float,
    latency_us: float = 1600.2,
    *,
    low: float | None = None,
    high: float | None = None,
    verdict: Verdict | None = None,
    **fields: object,
) -> BaselineTiming:
    """A rival that takes `latency_us`; the interval is 1 % wide to either side by default."""
    low = speedup * 0.99 if low is None else low
    high = speedup * 1.01 if high is None else high
    implied = Verdict.FASTER if low > 1 else Verdict.SLOWER if high < 1 else Verdict.SAME
    made = {
        "latency_us": latency_us,
        "speedup": speedup,
        "speedup_low": low,
        "speedup_high": high,
        "verdict": verdict or implied,
        "pairs": 40,
    }
    return BaselineTiming.model_validate(made | fields)


def timing(
    speedup: float = 1.97,
    latency_us: float = 812.3,
    *,
    low: float | None = None,
    high: float | None = None,
    verdict: Verdict | None = None,
    **fields: object,
) -> Timing:
    """A kernel that takes `latency_us`, timed against eager alone."""
    eager = baseline(speedup, latency_us * speedup, low=low, high=high, verdict=verdict)
    made = {
        "verdict": eager.verdict,
        "latency_us": latency_us,
        "latency_low_us": latency_us * 0.99,
        "latency_high_us": latency_us * 1.01,
        "speedup": speedup,
        "speedup_low": eager.speedup_low,
        "speedup_high": eager.speedup_high,
        "baselines": {BaselineName.EAGER: eager},
        "sol_fraction": 0.61,
        "calls": 80,
        "stopped": "precise",
    }
    return Timing.model_validate(made | fields)


def correct(
    speedup: float | None = 1.97, latency_us: float = 812.3, **fields: object
) -> Evaluation:
    """A correct kernel with that `timing`; None is one that could not be timed."""
    return Evaluation(
        status=Status.CORRECT,
        correctness=Correctness(calls_judged=5, calls_made=5),
        timing=None if speedup is None else timing(speedup, latency_us, **fields),
        memory=DeviceMemory(candidate_bytes=3000, baseline_bytes=2000),
    )


def unbuilt(
    log: str = "main.cpp:3:1: error: expected ';'",
    *,
    message: str = "it does not compile",
    **build: object,
) -> Evaluation:
    """A kernel that does not build, as a compiler told in `log`."""
    return Evaluation(
        status=Status.BUILD_ERROR,
        reason="compile_failed",
        message=message,
        detail=log,
        build=BuildReport.model_validate({"ok": False, "log": log, **build}),
    )
