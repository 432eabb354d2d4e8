"""What was measured of the kernel to refine, as sections of a prompt: P, A, S and R.

Each section describes the kernel itself, is replaced by words without content, or describes another
kernel (`agent.config.feedback_spec`). A control stands exactly where the real section would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.config.feedback_spec import MEASURED, Component, Control, FeedbackSpec
from agent.prompt.placebo import placebo
from agent.prompt.section import LIMITS, Section
from agent.record import figures
from evaluator.evaluation import Timing
from evaluator.settings import BaselineName
from tools.advice.diagnosis import remainder
from tools.advice.words import advice_lines, score_lines
from tools.profiling.profile_facts import shortened
from tools.profiling.profile_report import AdviceScore, KernelShare, Profile

ADVICE_TITLE = "What to change"
RAW_KERNELS = 3
"""The hottest ones, whose figures R shows."""
_NAME_WIDTH = 60
_TIME = "- time: "
"""Begins a line of the summary that the section on the distance repeats."""
_NOT_RAW = ("latency_us", "bound_us", "sol_fraction")
"""Derived figures that are S's to tell."""


@dataclass(frozen=True)
class Subject:
    profile: Profile | None
    timing: Timing | None
    scores: Sequence[AdviceScore] = field(default_factory=tuple)
    """What became of the advice in the last prompt."""
    tried: frozenset[str] = frozenset()
    """Rules whose advice was followed in an earlier turn, and gained nothing."""
    compile_us: float | None = None
    """Of `torch.compile`, where it was timed before the first turn."""
    tells_design: bool = True
    """How far tuning gets it is said as well."""


def measured_sections(
    feedback: FeedbackSpec, subject: Subject, number: int, other: Subject | None
) -> Iterator[Section]:
    """The sections that `feedback` asks for, in their order. `number`: of the subject's turn."""
    turn: int | None = number  # the first section names it for all
    for component in MEASURED:
        control, write = feedback.control_of(component), _WRITERS[component]
        if control is None or (real := write(subject, turn)) is None:
            continue
        if control is Control.REAL:
            yield real
        elif control is Control.PLACEBO:
            yield placebo(real, number)
        else:
            assert other is not None, "a shuffled component needs another kernel"
            instead = write(other, turn)
            assert instead is not None, f"the other kernel has nothing to show for {component}"
            yield instead
        turn = None


def _turn_line(turn: int | None) -> list[str]:
    return [] if turn is None else [f"- turn: {turn}"]


def _summary(subject: Subject, turn: int | None) -> Section | None:
    profile = subject.profile
    if profile is None:
        return None
    named = f"- bottleneck: {profile.bottleneck}"
    lines = profile.summary.strip().removeprefix(named).strip().splitlines()
    # Distance and advice have sections of their own, which P holds too; and the headline is the
    # evidence of the first piece of advice.
    given = [advice for advice in profile.advice[:1] if advice.rule not in subject.tried]
    first = f"- {given[0].evidence}" if given else None
    lines = [line for line in lines if not line.startswith(_TIME) and line != first]
    shown, rest = lines[: LIMITS.profile_lines], lines[LIMITS.profile_lines :]
    text = "\n".join([named, *_turn_line(turn), *shown])
    return Section("What the profiler said", text, sum(map(len, rest)))


def _advice(subject: Subject, turn: int | None) -> Section | None:
    if subject.profile is None:
        return None
    given = [advice for advice in subject.profile.advice if advice.rule not in subject.tried]
    profile, beaten_by = subject.profile, _beaten_by(subject)
    advised = advice_lines(given) or [remainder(profile.bottleneck, profile.figures, beaten_by)]
    lines = [*_turn_line(turn), *advised]
    if left_out := [a.rule for a in subject.profile.advice if a.rule in subject.tried]:
        names = ", ".join(left_out)
        lines.append(f"Followed before without a gain, and not advised again: {names}.")
    if subject.scores:
        lines += ["", "What became of the advice before:", ""]
        lines += [f"- {line}" for line in score_lines(subject.scores)]
    return Section(ADVICE_TITLE, "\n".join(lines))


def _beaten_by(subject: Subject) -> str:
    ours, theirs = subject.timing, subject.compile_us
    if ours is None or theirs is None or theirs >= ours.latency_us:
        return ""
    return f"torch.compile takes {figures.latency(theirs)}, less than this kernel"


def _distance(subject: Subject, turn: int | None) -> Section | None:
    """From the evaluation, as no profiler is needed for it."""
    timing = subject.timing
    if timing is None:
        return None
    lines = [*_turn_line(turn), f"- time: {timing.latency_us:.1f} us"]
    if timing.sol_fraction:
        is_published = timing.bound_rates == "published"
        whose = "published rates" if is_published else "rates measured on this device"
        bound = f" {timing.bound_us:.1f} us at {whose}," if timing.bound_us is not None else ""
        lines.append(
            f"- bound:{bound} {100 * timing.sol_fraction:.0f} % reached,"
            f" at most {max(1.0, 1 / timing.sol_fraction):.2f}x left"
        )
        if timing.attainable_us and is_published:
            left = timing.latency_us / timing.attainable_us
            lines.append(
                f"- attainable: {timing.attainable_us:.1f} us at the rates of PyTorch's own copies"
                f" and products, {left:.2f}x left"
            )
    else:
        lines.append("- bound: none that holds")
    lines += _design(subject, timing) if subject.tells_design else ()
    return Section("Distance to the speed of light", "\n".join(lines))


def _design(subject: Subject, timing: Timing) -> Iterator[str]:
    """How far tuning gets a kernel: until its busiest unit is busy all the time. It tells a design
    to tune from one to leave."""
    profile = subject.profile
    known = profile.figures if profile is not None else {}
    busiest = known.get("busiest_pct", 0.0) / 100.0
    if profile is None or not 0.0 < busiest <= 1.0 or known.get("local_traffic", 0.0) >= 0.1:
        return  # without its spills a design has less to do
    hot = profile.kernels[0]
    least_us = timing.latency_us * (1.0 - hot.share * (1.0 - busiest))
    eager_us = timing.baselines[BaselineName.EAGER].latency_us
    rival_us, rival = min((eager_us, "eager"), (subject.compile_us or math.inf, "torch.compile"))
    beyond = f"; {rival} takes {figures.latency(rival_us)}: only another design gets there"
    yield (
        f"- this design: the busiest unit in {shortened(hot.name, _NAME_WIDTH)} is"
        f" {figures.percent(busiest)} busy, so tuning leads to {figures.latency(least_us)} at best"
        f"{beyond if least_us > rival_us else ''}"
    )


def _raw(subject: Subject, turn: int | None) -> Section | None:
    profile = subject.profile
    if profile is None:
        return None
    lines = _turn_line(turn)
    lines += [line for kernel in profile.kernels[:RAW_KERNELS] for line in _kernel_lines(kernel)]
    derived = {name: value for name, value in profile.figures.items() if name not in _NOT_RAW}
    if derived:
        lines.append("- derived, of the hottest kernel and the whole call:")
        lines += [f"  - {name}: {value:.6g}" for name, value in sorted(derived.items())]
    if profile.missing:
        lines.append(f"- n/a here: {', '.join(profile.missing)}")
    shown, left_out = _within(lines, LIMITS.raw_characters)
    return Section("Raw metrics", shown, left_out)


def _kernel_lines(kernel: KernelShare) -> Iterator[str]:
    yield f"- kernel: {shortened(kernel.name, 120)}"
    yield f"  - launches: {kernel.launches}"
    yield f"  - time_us: {kernel.time_us:.6g}"
    yield f"  - share: {kernel.share:.4g}"
    for name, value in kernel.metrics.items():
        yield f"  - {name}: {'n/a' if value is None else f'{value:.6g}'}"


def _within(lines: Sequence[str], limit: int) -> tuple[str, int]:
    """As many whole lines as `limit` characters hold, and how many characters that leaves out."""
    text = "\n".join(lines)
    if len(text) <= limit:
        return text, 0
    shown = text[: text.rfind("\n", 0, limit)]
    left_out = len(text) - len(shown)
    return f"{shown}\n[... {left_out} characters left out ...]", left_out


_WRITERS: dict[Component, Callable[[Subject, int | None], Section | None]] = {
    Component.PROFILE: _summary,
    Component.ADVICE: _advice,
    Component.DISTANCE: _distance,
    Component.RAW: _raw,
}
