"""A candidate at each of the sizes that its problem is served at, and the weighted time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest

from evaluator.audit_record import DeepAudit, SanitizerRun
from evaluator.evaluation import (
    BaselineTiming,
    CaseTiming,
    Counted,
    Evaluation,
    EvaluationRequest,
    Seconds,
    Status,
    Timing,
    Verdict,
    success_message,
)
from evaluator.hardware.published import published
from evaluator.judge.timing.interval import Interval, verdict_of
from evaluator.record import Record
from evaluator.rival import CheckRequest, Rival
from evaluator.settings import BaselineName

_MARGIN = 0.01
"""What two equal kernels may differ by, as of one case on a CPU; on a GPU half that."""
_SURE = 1.5
"""Half a 99.5 % interval over half a 95 % one, rounded up: 1.43 of what is normally distributed."""


def judged_at_each(
    request: EvaluationRequest,
    judge: Callable[[EvaluationRequest, tuple[DeepAudit, ...]], Evaluation],
) -> Evaluation:
    """The verdict over all cases, which are judged one after another: that at the first one where
    the candidate is refused, else one with the weighted time. Without cases, the judge's own.

    `judge` gets the audits at the cases before, too."""
    judged: list[Evaluation] = []
    for each in (asked := request.at_each_case()):
        found = judge(each, tuple(one.audit for one in judged if one.audit))
        judged.append(found if each.decides else _allowed(found))
        if judged[-1].status is not Status.CORRECT:
            break
    if not request.cases:
        return judged[0]
    tested = not asked[-1].decides
    last = judged[-1]
    names = [*(["the test's sizes"] if tested else []), *(case.name for case in request.cases)]
    names = names[: len(asked)]
    spent = [dict(each.seconds) for each in judged]
    seconds = Seconds(**{key: sum(each[key] for each in spent) for key in spent[0]})
    if last.status is not Status.CORRECT:
        return last.model_copy(update={"seconds": seconds, "case": names[len(judged) - 1]})
    cases = tuple(
        CaseTiming(sizes=case.sizes, weight=case.weight, counts=case.counts, timing=timing)
        for case, timing in zip_longest(request.cases, [each.timing for each in judged[tested:]])
        if timing is not None or not tested
    )
    if (timing := weighted(cases)) is not None:
        timing = timing.model_copy(update={"counted": counted(cases, last.device)})
    update = {
        "timing": timing,
        "message": success_message(timing),
        "cases": cases,
        "correctness": max(
            (c for each in judged if (c := each.correctness)),
            key=lambda c: (c.error_ratio or 0.0) / (c.error_ratio_limit or 1.0),
        ),
        "memory": max((each.memory for each in judged), key=lambda m: m.candidate_bytes or 0),
        "provenance": next((label for each in judged if (label := each.provenance)), None),
        "audit": _audit(names, [each.audit for each in judged]),
        "seeds": tuple(seed for each in judged for seed in each.seeds),
        "findings": tuple(_told(names, [each.findings for each in judged])),
        "notes": tuple(_told(names, [each.notes for each in judged])),
        "seconds": seconds,
    }
    # What no sizes change is as in the heaviest.
    return judged[0].model_copy(update=update)


def _allowed(found: Evaluation) -> Evaluation:
    """As a protocol sees it that only times there: what is wrong is a finding."""
    if found.status is Status.CORRECT:
        return found
    findings = (*found.findings, f"{found.reason}: {found.message}")
    update = {"status": Status.CORRECT, "reason": "", "findings": findings, "correctness": None}
    return found.model_copy(update=update)


def counted(cases: Sequence[CaseTiming], device: str) -> Counted | None:
    """Summed counts over the summed time; `device`: its name. None where a case that was timed has
    no counts."""
    timed = [each for each in cases if each.timing]
    known = [(c.weight, *c.counts, c.timing.latency_us) for c in timed if c.counts and c.timing]
    if not known or len(known) < len(timed):
        return None
    time_s = sum(weight * us for weight, *_, us in known) / 1e6
    bandwidth = sum(weight * moved for weight, moved, *_ in known) / time_s
    rate = sum(weight * operations for weight, _, operations, *_ in known) / time_s
    share, peaks = None, published(device)
    if peaks is not None:
        most = peaks.flops.get(known[0][3], math.inf)
        share = max(bandwidth / peaks.bandwidth_bytes_s, rate / most)
    return Counted(gbps=bandwidth / 1e9, tflops=rate / 1e12, peak_share=share)


def checked_at_each(request: CheckRequest, check: Callable[[CheckRequest], Rival]) -> Rival:
    """A problem checked at each of its cases; times are weighted means over those that are timed,
    and kernels those of the heaviest."""
    requests = request.at_each_case()
    found = [check(each) for each in requests]
    timed = [rival for each, rival in zip(requests, found, strict=True) if each.is_timed]
    weights = [case.weight for case in request.cases[: len(timed)]] or [1.0]
    update: dict[str, object] = {
        name: mean / sum(weights) if (mean := _sum(weights, timed, name)) is not None else None
        for name in ("eager_us", "compile_us", "bound_us", "attainable_us")
    }
    update["notes"] = tuple(dict.fromkeys(note for rival in found for note in rival.notes))
    update["needed_bytes"] = max(rival.needed_bytes for rival in found)
    update["measured_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    return timed[0].model_copy(update=update)


def _sum(weights: Sequence[float], timed: Sequence[Record], name: str) -> float | None:
    """Of a figure of all cases, by weight; None where one lacks it."""
    values = [getattr(each, name) for each in timed]
    return None if None in values else sum(w * v for w, v in zip(weights, values, strict=True))


def _audit(names: Sequence[str], audits: Sequence[DeepAudit | None]) -> DeepAudit | None:
    """The most telling one, with the sanitizers of all cases; where they found the same, one."""
    made = {name: audit for name, audit in zip(names, audits, strict=True) if audit is not None}
    alike: dict[tuple[str, ...], dict[str, SanitizerRun]] = {}
    for name, audit in made.items():
        for run in audit.sanitizers:
            key = (run.tool, run.outcome, run.note, str(run.findings))
            alike.setdefault(key, {})[name] = run
    sanitizers = []
    for (*_, note, _), runs in alike.items():
        one, calls = next(iter(runs.values())), sum(run.calls for run in runs.values())
        update = {"note": _about(names, list(runs), note), "calls": calls}
        sanitizers.append(one.model_copy(update=update))
    most = max(made.values(), key=lambda audit: len(audit.properties), default=None)
    seconds = sum(audit.seconds for audit in made.values())
    return most and most.model_copy(update={"sanitizers": tuple(sanitizers), "seconds": seconds})


def _told(names: Sequence[str], lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Each line once, with the cases that it is about unless it is about all."""
    for line in dict.fromkeys(line for each in lines for line in each):
        yield _about(names, [n for n, each in zip(names, lines, strict=True) if line in each], line)


def _about(names: Sequence[str], about: Sequence[str], line: str) -> str:
    return line if len(about) == len(names) else f"{line} (at {'; '.join(about)})".lstrip()


def weighted(cases: Sequence[CaseTiming]) -> Timing | None:
    """The timing of a call whose sizes are drawn by weight, of the cases that were timed.

    Times, their intervals' ends and bounds are means, sum(w_i t_i); what not all cases have, and
    what makes no sense of a sum, is None. The speedup over a baseline is S = sum(w_i r_i) /
    sum(w_i k_i), the baseline's times over the kernel's. As pairs of calls give a case's speedup
    s_i better than its times, it is taken from 1/S = sum(f_i / s_i); f_i is the case's share of
    the baseline's time, w_i r_i / sum(w_j r_j), whose own error is left out. Cases are measured
    apart: half the widths of f_i / s_i add in quadrature.
    """
    timed = [(case.weight, case.timing) for case in cases if case.timing is not None]
    timings = [timing for _, timing in timed]
    if len(timings) < 2:
        return timings[0] if timings else None
    weights = [weight / sum(weight for weight, _ in timed) for weight, _ in timed]
    update: dict[str, object] = dict.fromkeys(("sol_score", "called", "wall_latency_us"))
    means = ("latency_us", "latency_low_us", "latency_high_us")
    for name in (*means, "floor_us", "bound_us", "attainable_us"):
        update[name] = _sum(weights, timings, name)
    for name in ("calls", "disturbed_blocks"):
        update[name] = sum(getattr(timing, name) for timing in timings)
    baselines = {
        name: _over(weights, [timing.baselines[name] for timing in timings])
        for name in timings[0].baselines
        if all(name in timing.baselines for timing in timings)
    }
    eager = dict(baselines[BaselineName.EAGER])
    update |= {name: eager[name] for name in ("verdict", "speedup", "speedup_low", "speedup_high")}
    update |= {"workers": min(timing.workers for timing in timings), "worker_speedups": ()}
    update["launch_bound"] = all(timing.launch_bound for timing in timings)
    found = timings[0].model_copy(update=update | {"baselines": baselines})
    logs = [w * math.log(t.speedup) for w, t in zip(weights, timings, strict=True)]
    found = found.model_copy(update={"geometric_speedup": math.exp(sum(logs))})
    reached = found.bound_us / found.latency_us if found.bound_us else None
    return found.model_copy(update={"sol_fraction": reached})


def _over(weights: Sequence[float], cases: Sequence[BaselineTiming]) -> BaselineTiming:
    times = [w * case.latency_us for w, case in zip(weights, cases, strict=True)]
    inverse, below, above = 0.0, 0.0, 0.0
    for time, case in zip(times, cases, strict=True):
        share, low, high = time / sum(times), case.speedup_low, case.speedup_high
        if case.verdict is Verdict.UNCLEAR:
            # Of a disturbed case the interval may leave out 1, and yet says nothing.
            low, high = min(low, 1.0), max(high, 1.0)
        inverse += share / case.speedup
        below = math.hypot(below, share / case.speedup - share / high)
        above = math.hypot(above, (share / low if low else math.inf) - share / case.speedup)

    def interval(width: float, margin: float) -> Interval:
        low, least = 1 / (inverse + width * above), inverse - width * below
        high = 1 / least if least > 0 else math.inf
        return Interval(1 / inverse, low / (1 + margin), high * (1 + margin))

    verdict, found = verdict_of(interval(_SURE, _MARGIN), interval(1.0, 0.0), _MARGIN)
    return BaselineTiming(
        latency_us=sum(times),
        speedup=found.value,
        speedup_low=found.low,
        speedup_high=found.high,
        verdict=verdict,
        pairs=sum(case.pairs for case in cases),
        flags=cases[0].flags,
    )
