"""Which schedule comes next: from the prior without feedback, by hill climbing with it.

What each letter allows. G: the kernel's plan, so a change to it instead of a fresh draw. E: which
changes failed or were slower, so they are undone and not tried again, and when to leave a kernel
that small changes no longer make faster. P: which knobs to turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from math import log
from random import Random
from typing import NamedTuple

from agent.tuner.planning.effects import Effects, fit
from agent.tuner.planning.moves import BLAME, MOVES
from agent.tuner.planning.prompt import Request, Trial
from agent.tuner.planning.schedule import Knob, Schedule, Space


class Choice(NamedTuple):
    """A schedule and, in a clause, the reason for it."""

    schedule: Schedule
    reason: str


Emit = Callable[[Schedule], str]
"""What a schedule comes to: two that give the same kernels are one."""

Pair = tuple[str, str]
"""A knob and one of its choices."""

_PATIENCE = 3
"""Turns without a gain after which a climb starts again elsewhere."""
_NOISE = 0.01
"""Of the logarithm of a speedup: what is less is no gain."""
_DRAWS = 64


def choose(
    request: Request, space: Space, temperature: float | None, seed: int | None, emit: Emit
) -> Choice:
    """The next schedule; the same for the same request, temperature and seed."""
    random = _random(request, temperature, seed)
    heat = 1.0 if temperature is None else min(max(temperature, 0.0), 1.0)
    if request.kernel is None:
        return _fresh(request, space, heat, random)
    base = space.adopt(request.kernel)
    trials = known_trials(request, space)
    tried = {emit(t.schedule) for t in trials} | {emit(base)}

    def new(schedule: Schedule) -> bool:
        return emit(schedule) not in tried

    mine = next((t for t in trials if t.schedule.key() == base.key()), None)
    if mine is not None and mine.failed:
        return _back_out(space, base, mine.status, new, random)
    banned = _banned(base, trials, space)
    effects = fit([(t.schedule, t.speedup) for t in trials if t.speedup and not t.failed])

    def allowed(moved: Schedule) -> bool:
        return new(moved) and not banned & _differences(base, moved)

    if _turns_without_gain(trials) >= _PATIENCE:
        # What is known of the choices, and luck for what isn't.
        drawn = [d for d in (space.draw(random) for _ in range(_DRAWS)) if allowed(d)]
        if drawn:
            best = max(drawn, key=lambda d: effects.gain(base, d) + 0.3 * heat * random.random())
            return Choice(best, f"{_PATIENCE} turns without a gain: a fresh start")
    for move in MOVES.get(space.backend, {}).get(request.bottleneck, ()):
        moved = _apply(space, base, move)
        if moved is not None and allowed(moved) and effects.gain(base, moved) > -_NOISE:
            return Choice(moved, f"the bottleneck is {request.bottleneck}: {_said(base, moved)}")
    for moved in _ranked(space, base, trials, effects, random, heat):
        if allowed(moved):
            return Choice(moved, f"one change: {_said(base, moved)}")
    others = (space.draw(random) for _ in range(_DRAWS))
    other = next((d for d in others if allowed(d)), base)
    return Choice(other, "every single change has been tried: a fresh draw")


def _turns_without_gain(trials: Sequence[Trial]) -> int:
    """How many trials, failed ones too, came since the best so far was last beaten."""
    best, since = 0.0, 0
    for trial in trials:
        speedup = 0.0 if trial.failed else trial.speedup or 0.0
        since = 0 if speedup > best * (1 + _NOISE) else since + 1
        best = max(best, speedup)
    return since if best else 0


def _random(request: Request, temperature: float | None, seed: int | None) -> Random:
    text = f"{request.text}\0{temperature}\0{seed}".encode()
    return Random(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))


def _fresh(request: Request, space: Space, heat: float, random: Random) -> Choice:
    """No kernel was shown: the prior, more careful after a failure, or the profiler's move."""
    default = space.default()
    chosen = {k.name: k.draw(random) if random.random() < heat else k.default for k in space.knobs}
    schedule, reason = Schedule(space.family, chosen), "a first draft"
    if any(r.status != "correct" for r in request.reports):
        for knob in space.knobs:
            if schedule[knob.name] in knob.risky:
                schedule = schedule.replace(knob.name, default[knob.name])
        reason = "the last one failed: nothing risky"
    for move in MOVES.get(space.backend, {}).get(request.bottleneck, ())[:1]:
        moved = _apply(space, schedule, move)
        if moved is not None:
            return Choice(moved, f"the bottleneck was {request.bottleneck}")
    return Choice(schedule, reason)


def known_trials(request: Request, space: Space) -> list[Trial]:
    """Earlier schedules, with what E said about them."""
    trials = [a._replace(schedule=space.adopt(a.schedule)) for a in request.attempts]
    shown = [(request.kernel, request.report(request.kernel_turn))]
    if request.reports:
        last = request.reports[0]
        shown.append((request.last, last))
        if request.last is None and request.kernel_turn in (None, last.turn):
            shown[0] = (request.kernel, last)
    for plan, report in shown:
        if plan is not None:
            status, speedup = (report.status, report.speedup) if report else ("", None)
            trials.append(Trial(space.adopt(plan), status, speedup))
    # The table and the reports may tell of the same turn: the last word on a schedule stands.
    return list({t.schedule.key(): t for t in trials}.values())


def _back_out(
    space: Space,
    base: Schedule,
    status: str,
    new: Callable[[Schedule], bool],
    random: Random,
) -> Choice:
    """Nothing correct yet: undo what most likely broke this one, then anything risky, then all."""
    suspects = [space.knob(n) for n in BLAME.get(status, ())]
    risky = [k for k in suspects if k and base[k.name] in k.risky]
    others = [k for k in suspects if k and k not in risky and base[k.name] != k.default]
    steps: list[Sequence[Knob]] = [[k] for k in risky]
    steps += [risky, [k for k in space.knobs if base[k.name] in k.risky]]
    steps += [[k] for k in others] + [space.knobs]
    for knobs in steps:
        back = base
        for knob in knobs:
            back = back.replace(knob.name, knob.default)
        if new(back):
            return Choice(back, f"the last one ended as {status}: {_said(base, back)}")
    safe = [
        space.default().replace(k.name, c)
        for k in space.knobs
        for c in k.choices
        if c not in k.risky
    ]
    left = [s for s in safe if new(s)]
    picked = random.choice(left) if left else space.default()
    return Choice(picked, f"the last one ended as {status}: another careful one")


def _banned(base: Schedule, trials: Iterable[Trial], space: Space) -> set[Pair]:
    """Choices that broke a kernel: the only difference from one that works, or the suspect's."""
    banned: set[Pair] = set()
    good = [base] + [t.schedule for t in trials if t.status == "correct"]
    for trial in trials:
        if not trial.failed:
            continue
        changed = min((_differences(g, trial.schedule) for g in good), key=len)
        if len(changed) > 1:
            blamed = set(BLAME.get(trial.status, ()))
            changed = {
                (n, c) for n, c in changed if n in blamed and (k := space.knob(n)) and c in k.risky
            }
        banned |= changed
    return banned


def _differences(good: Schedule, other: Schedule) -> set[Pair]:
    return {(k, v) for k, v in other.choices.items() if good.choices.get(k) != v}


def _apply(space: Space, base: Schedule, move: str) -> Schedule | None:
    """`base` with that move, as far as this space has it; None where that changes nothing."""
    moved = base
    for name, choice in re.findall(r"(\w+)=(\w+)", move):
        knob = space.knob(name)
        if knob is not None and choice in knob.choices:
            moved = moved.replace(name, choice)
    return moved if moved.key() != base.key() else None


def _ranked(
    space: Space,
    base: Schedule,
    trials: Sequence[Trial],
    effects: Effects,
    random: Random,
    heat: float,
) -> list[Schedule]:
    """Every single change, the most promising first.

    Promising: by the trials that had that choice, and by how much likelier the prior holds it than
    the present one. A knob tried to no avail waits.
    """
    spent = {
        name: sum(1 for t in trials if t.schedule[name] != base[name]) for name in base.choices
    }

    def promise(move: tuple[Knob, str]) -> float:
        knob, choice = move
        evidence = effects.gain(base, base.replace(knob.name, choice))
        weights = dict.fromkeys(knob.choices, 1.0) | dict(
            zip(knob.choices, knob.weights, strict=False)
        )
        prior = log(weights[choice] / weights[base[knob.name]])
        risk = -0.5 if choice in knob.risky else 0.0
        noise = random.random() * (0.1 + 0.6 * heat)
        return 3.0 * evidence + 0.7 * prior + risk - 0.3 * spent[knob.name] + noise

    moves = [(k, c) for k in space.knobs for c in k.neighbours(base[k.name])]
    if any(t.status for t in trials):
        moves.sort(key=promise, reverse=True)
    else:
        # Without E nothing is known of any of them: a change is made blindly.
        random.shuffle(moves)
    return [base.replace(knob.name, choice) for knob, choice in moves]


def _said(old: Schedule, new: Schedule) -> str:
    changes = [f"{k} {old[k]} -> {v}" for k, v in new.choices.items() if old.choices.get(k) != v]
    return ", ".join(changes)
