"""Which schedule comes next: from the prior without feedback, by hill climbing with it.

What each component allows. G: the kernel's plan, so a change to it instead of a fresh draw. E:
which changes failed or were slower, so they are undone and not tried again. P: which knobs to turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import log
from random import Random

from agent.tuner.planning.prompt import Request, Trial
from agent.tuner.planning.schedule import Schedule, Space

CPP: Mapping[str, tuple[str, ...]] = {
    "single_thread": ("threads=all",),
    "not_vectorised": ("vec=16", "maths=poly", "vec=8"),
    "compute": ("maths=poly", "vec=16", "stage=stack", "unroll=on"),
    "memory_bandwidth": ("threads=all", "vec=16", "chunk=16"),
    "cache_bandwidth": ("stage=stack", "chunk=16"),
    "redundant_traffic": ("stage=stack",),
    "latency": ("unroll=on", "acc=fp32", "chunk=16"),
    "launch_overhead": ("threads=one", "chunk=64"),
    "too_few_blocks": ("chunk=1", "chunk=4", "threads=all"),
}

CUDA: Mapping[str, tuple[str, ...]] = {
    "memory_bandwidth": ("vec=4", "stage=regs team=all", "items=2"),
    # A row is read once where all threads of a block hold it together.
    "redundant_traffic": ("stage=regs team=all",),
    "cache_bandwidth": ("vec=4", "stage=regs team=all", "team=32"),
    "too_few_blocks": ("threads=128", "team=all", "threads=64", "items=1"),
    # The more threads share a row, the less of it each must hold.
    "occupancy": ("team=all threads=256", "stage=none", "threads=128", "items=1"),
    "latency": ("vec=4", "items=4", "team=all threads=512", "stage=regs", "items=8"),
    "compute": ("acc=fp32", "vec=4", "items=4"),
    "launch_overhead": ("threads=1024",),
    "at_the_bound": ("threads=512", "threads=128"),
}
"""`library` has no move: the time is not ours."""

MOVES: Mapping[str, Mapping[str, tuple[str, ...]]] = {"cpp": CPP, "cuda": CUDA}
"""Backend -> bottleneck -> moves, best first.

A move is one or more choices that belong together, written as in a plan. Knobs that a family lacks
are passed over, so one table serves every family of a backend.
"""

Choice = tuple[Schedule, str]
"""A schedule and, in a clause, the reason for it."""
Emit = Callable[[Schedule], str]
"""The text of a schedule's kernels: two schedules of the same text are one."""
_FAILED = 0.1
"""The speedup that a failed kernel counts for."""


def choose(
    request: Request, space: Space, temperature: float | None, seed: int | None, emit: Emit
) -> Choice:
    """The next schedule; the same for the same request, temperature and seed."""
    random = Random(f"{request.text}\0{temperature}\0{seed}")
    heat = 1.0 if temperature is None else min(max(temperature, 0.0), 1.0)
    if request.kernel is None:
        return _fresh(request, space, heat, random)
    base = space.adopt(request.kernel)
    adopted = [t._replace(schedule=space.adopt(t.schedule)) for t in request.trials]
    # The table and the reports may speak of the same turn: the last word on a schedule counts.
    trials = {t.schedule.plan(): t for t in adopted}
    tried = {emit(t.schedule) for t in adopted}

    def new(schedule: Schedule) -> bool:
        return emit(schedule) not in tried

    mine = trials[base.plan()]
    if mine.failed:
        return _back_out(space, base, mine.status, new, random)
    for move in MOVES[space.backend].get(request.bottleneck, ()):
        moved = _apply(space, base, move)
        if new(moved) and gain(trials.values(), base, moved) >= 0.0:
            return moved, f"the bottleneck is {request.bottleneck}: {_changes(base, moved)}"

    def promise(moved: Schedule) -> float:
        """What the trials say of a change, how much likelier the prior holds it, and luck."""
        ((name, choice),) = moved.differences(base)
        prior = log(space.weight(name, choice) / space.weight(name, base[name]))
        luck = random.random() * (0.1 + 0.6 * heat)
        return 3.0 * gain(trials.values(), base, moved) + 0.7 * prior + luck

    moves = space.neighbours(base)
    random.shuffle(moves)
    # Without E all of them are alike: a change is made blindly.
    ranked = sorted(moves, key=promise, reverse=True) if any(t.status for t in adopted) else moves
    for moved in ranked:
        if new(moved):
            return moved, f"one change: {_changes(base, moved)}"
    return space.draw(random), "every single change has been tried: a fresh draw"


def _fresh(request: Request, space: Space, heat: float, random: Random) -> Choice:
    """No kernel was shown: the prior, more careful after a failure, or the profiler's move."""
    hot = [k.name for k in space.knobs if random.random() < heat]
    schedule, reason = space.default().adopting(space.draw(random), hot), "a first draft"
    if any(status != "correct" for status, _ in request.reports.values()):
        schedule = schedule.adopting(space.default(), space.risks(schedule))
        reason = "the last one failed: nothing risky"
    for move in MOVES[space.backend].get(request.bottleneck, ())[:1]:
        moved = _apply(space, schedule, move)
        if moved != schedule:
            return moved, f"the bottleneck was {request.bottleneck}"
    return schedule, reason


def gain(trials: Iterable[Trial], old: Schedule, new: Schedule) -> float:
    """Expected logarithm of how many times faster `new` is than `old`.

    Each choice counts by the mean of the trials that had it, over the mean of all, held back as by
    one more trial in which it changed nothing.
    """
    speedups = [(t.schedule, _FAILED if t.failed else t.speedup) for t in trials]
    logs = [(schedule, log(speedup)) for schedule, speedup in speedups if speedup]
    mean = sum(value for _, value in logs) / max(len(logs), 1)

    def worth(knob: str, choice: str) -> float:
        held = [value - mean for schedule, value in logs if schedule[knob] == choice]
        return sum(held) / (len(held) + 1)

    return sum(worth(k, c) - worth(k, old[k]) for k, c in new.differences(old))


def _back_out(
    space: Space, base: Schedule, status: str, new: Callable[[Schedule], bool], random: Random
) -> Choice:
    """Nothing correct yet: undo what is risky, then all."""
    default = space.default()
    for names in (space.risks(base), list(base.choices)):
        back = base.adopting(default, names)
        if new(back):
            return back, f"the last one ended as {status}: {_changes(base, back)}"
    careful = [s for s in space.neighbours(default) if not space.risks(s) and new(s)]
    picked = random.choice(careful) if careful else default
    return picked, f"the last one ended as {status}: another careful one"


def _apply(space: Space, base: Schedule, move: str) -> Schedule:
    """`base` with that move, as far as this space has it."""
    return space.adopt(
        Schedule(base.family, {**base.choices, **dict(re.findall(r"(\w+)=(\w+)", move))})
    )


def _changes(old: Schedule, new: Schedule) -> str:
    return ", ".join(f"{k} {old[k]} -> {c}" for k, c in new.choices.items() if old[k] != c)
