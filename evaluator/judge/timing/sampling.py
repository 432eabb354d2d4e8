"""Timing a candidate beside its baselines: alternating calls, and when to stop."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from statistics import median

import torch

from evaluator.evaluation import Stopped
from evaluator.judge.context.baselines import failures_are_ours
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.problem.variation import is_near
from evaluator.judge.timing.call_cost import CallCost, call_cost
from evaluator.judge.timing.disturbance import MOST_DISTURBED_SHARE, Disturbance, Watch, watch
from evaluator.judge.timing.samples import Samples, paired_ratios
from evaluator.judge.timing.stopping_rule import FEWEST_BLOCKS, early_stop
from evaluator.judge.timing.verified_calls import VerifiedCalls
from evaluator.judge.workers.call import Call
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.settings import BaselineName

LEAST_BLOCKS_EVER = 9
"""With fewer, the interval behind the verdict has no bounds."""
_LEAST_BLOCKS_OF_SEVERAL = 6
"""Of each of several workers: with fewer, work before the start is neither found nor charged."""
_MOST_BLOCKS = 400
_ALTERNATING_BLOCKS = 12
"""Blocks of the first worker that alternate between others and held calls; then, and in further
workers, one in four is of others."""
HOLD_S = 0.5
"""A call that is not enqueued by then waits for the device, or makes more launches than fit."""

_SamplesByRunner = dict[BaselineName | None, Samples]
Verify = Callable[[list[torch.Tensor], Draw], None]


@dataclass(frozen=True)
class Sampling:
    """All that was measured, and why it stopped.

    On a GPU `candidate` and `baselines` are of calls that were held until all of them was enqueued,
    where eager can be held; `called` is of calls as they are launched from Python. Elsewhere that
    is empty.
    """

    candidate: Samples
    baselines: dict[BaselineName, Samples]
    called: dict[BaselineName | None, Samples]
    """By baseline; None is the candidate."""
    left_out_us: float
    """What the candidate's own times left out of a call; `candidate` has it."""
    hidden_us: dict[BaselineName | None, float]
    """In the median, what the judge's clock saw beyond what the worker said; by baseline."""
    held: frozenset[BaselineName | None]
    """Whose streams can be held."""
    stopped: Stopped
    cost: CallCost
    narrowing_seconds: float
    """Spent after there were blocks enough for an interval."""
    blocks: int
    decisive_blocks: int
    """Of these, those whose times the verdict rests on: where eager can be held, the held ones."""
    disturbed_blocks: int
    """Of the decisive ones."""
    disturbed: Counter[Disturbance]
    """How many blocks each kind of disturbance was seen in; several may meet in one."""
    seen: dict[str, float | int]

    def beside(self, name: BaselineName) -> tuple[Samples, Samples]:
        """The candidate's samples and a baseline's, to be compared: as called where only eager
        could be held."""
        if self.called and name not in self.held:
            return self.called[None], self.called[name]
        return self.candidate, self.baselines[name]


def sample(
    context: ProblemContext,
    candidate: ModuleRunner,
    verify: Verify,
    *,
    number: int,
    several: bool,
    held: frozenset[BaselineName | None] | None,
    seconds: float,
) -> Sampling:
    """Time the candidate and every baseline in blocks of one call each, in random order.

    The candidate gets fresh inputs, and every baseline those that the candidate had last, which it
    gains nothing by seeing; through the same memory, after the caches were flushed. Its first calls
    are verified, and of the others some, chosen in secret (`verified_calls.py`). `number`: of the
    workers of this candidate, from 0; each is timed beside another one of eager. `several`: more
    are to follow, or came before, so that fewer blocks of each suffice. `held`: who can be held, as
    the first one found it.
    """
    runners: dict[BaselineName | None, ModuleRunner] = {None: candidate}
    runners.update(context.baselines.timed(number))
    cost = call_cost(context)
    context.workers.settle()
    context.memory.settle()
    with watch(context.settings.device) as observer:
        if context.prepare_next():
            observer.expect_another_process()
        sampler = _Sampler(context, runners, verify, cost, observer, held, is_another=number > 0)
        return sampler.run(seconds, several=several)


class _Sampler:
    def __init__(
        self,
        context: ProblemContext,
        runners: dict[BaselineName | None, ModuleRunner],
        verify: Verify,
        cost: CallCost,
        observer: Watch,
        held: frozenset[BaselineName | None] | None,
        *,
        is_another: bool,
    ) -> None:
        self._context = context
        self._verified = VerifiedCalls(is_another=is_another)
        self._runners = runners
        self._verify = verify
        self._cost = cost
        self._observer = observer
        self._shuffle = random.SystemRandom().shuffle
        self._good: _SamplesByRunner = {name: Samples() for name in runners}
        self._all: _SamplesByRunner = {name: Samples() for name in runners}
        self._called: _SamplesByRunner = {name: Samples() for name in runners}
        self._all_called: _SamplesByRunner = {name: Samples() for name in runners}
        self._disturbed = 0
        self._disturbances: Counter[Disturbance] = Counter()
        self._draw = context.draws.plain()
        """Of the candidate's last call."""
        self._held = self._can_be_held() if held is None else held
        # Beside a baseline that cannot be held, the calls that are not held decide.
        self._needs_called = bool(self._held) and self._held < runners.keys()
        few = is_another and not self._needs_called
        self._alternating = 0 if few else _ALTERNATING_BLOCKS

    def _can_be_held(self) -> frozenset[BaselineName | None]:
        """Whose calls are enqueued while the stream is held; none where eager's is not."""
        context = self._context
        if context.device.type != "cuda" or context.rules.in_one_process:
            return frozenset()
        held = set()
        for which, runner in self._runners.items():
            with (
                _blamed_on(which),
                context.calling(runner, context.draws.plain(), hold_s=HOLD_S) as call,
            ):
                if call.was_held:
                    held.add(which)
        return frozenset(held if BaselineName.EAGER in held else ())

    def run(self, seconds: float, *, several: bool) -> Sampling:
        """Blocks until they suffice or time is up."""
        few = several and not self._needs_called
        least = _LEAST_BLOCKS_OF_SEVERAL if few else LEAST_BLOCKS_EVER
        begin = time.monotonic()
        stopped: Stopped = "calls"
        blocks = 0
        first_interval: float | None = None
        while blocks < _MOST_BLOCKS:
            self._block(blocks)
            blocks += 1
            if first_interval is None and len(self._all[None].total_us) >= FEWEST_BLOCKS:
                first_interval = time.monotonic()
            made = len(self._all[None].total_us)
            is_over = time.monotonic() - begin > seconds
            if made >= least and is_over:
                stopped = "time"
                break
            if (enough := self._enough(made)) is not None:
                stopped = enough
                break
        # Where hardly a block was quiet, all count, and the record says how many were disturbed.
        quiet = len(self._good[None].total_us) >= least
        samples = self._good if quiet else self._all
        quiet = len(self._called[None].total_us) >= least
        called = self._called if quiet else self._all_called
        hidden_us = {name: median(each.hidden_us) for name, each in samples.items()}
        candidate, left_out_us = self._charged(samples)
        called[None], _ = self._charged(called)
        return Sampling(
            candidate=candidate,
            baselines={name: s for name, s in samples.items() if name is not None},
            called=called if self._held else {},
            left_out_us=left_out_us,
            hidden_us=hidden_us,
            held=self._held,
            stopped=stopped,
            cost=self._cost,
            narrowing_seconds=time.monotonic() - first_interval if first_interval else 0.0,
            blocks=blocks,
            decisive_blocks=len(self._all[None].total_us),
            disturbed_blocks=self._disturbed,
            disturbed=self._disturbances,
            seen=self._observer.seen(),
        )

    def _charged(self, samples: _SamplesByRunner) -> tuple[Samples, float]:
        """The candidate's samples with what its own times leave out of a call, and how much."""
        eager, usual = samples[BaselineName.EAGER], None
        if self._context.device.type == "cuda" and eager.hidden_us:
            usual = median(eager.hidden_us)
        left_out_us = samples[None].left_out_us(eager, usual)
        return samples[None].with_left_out(left_out_us), left_out_us

    def _block(self, made: int) -> None:
        context = self._context
        order = list(self._runners)
        self._shuffle(order)
        calls: dict[BaselineName | None, Call] = {}
        sealed: tuple[list[torch.Tensor], Draw] | None = None
        is_held = bool(self._held) and not self._is_turn_of_others(made)
        self._observer.begin()
        for which in order:
            runner = self._runners[which]
            if which is None:
                self._draw = context.draws.next()
            draw = self._draw
            if context.draws.writable:
                draw = replace(draw, order=context.draws.lay_again(draw))
            if which is not None:
                self._runners[None].stand_still()
            hold_s = HOLD_S if is_held and which in self._held else 0.0
            # Drawn in secret: nothing of it shows before the worker is done.
            reads = which is None and self._verified.next()
            with (
                _blamed_on(which),
                context.calling(runner, draw, flushes=True, hold_s=hold_s, reads=reads) as call,
            ):
                borrowed = (
                    context.rejected_as_borrowed(runner, call.reply) if which is None else None
                )
                if borrowed is not None and context.rules.rejects:
                    raise borrowed
                if reads:
                    sealed = context.sealed_outputs(runner, call.reply, draw), draw
            calls[which] = call
            if which is BaselineName.EAGER:  # however long it takes, half as fast is allowed
                self._runners[None].said.allowance.limit_s += 2 * call.wall_us / 1e6
        enqueued = is_held and {None, BaselineName.EAGER} <= self._held
        found = self._observer.end(enqueued=enqueued)
        disturbed = bool(found)
        if is_held:
            # One that is let go on unfinished is slow for no fault of its own.
            disturbed |= not all(calls[w].was_held for w in self._held if w is not None)
        if is_held or not self._held:
            self._disturbed += disturbed
            self._disturbances.update(found)
        whole, quiet = self._all, self._good
        if self._held and not is_held:
            whole, quiet = self._all_called, self._called
        for which, call in calls.items():
            proves = which is None and sealed is not None and not is_near(self._draw.seed)
            whole[which].add(call, proves=proves)
            if not disturbed:
                quiet[which].add(call, proves=proves)
        if sealed is not None:
            self._verify(*sealed)

    def _is_turn_of_others(self, made: int) -> bool:
        return made % 2 == 0 if made < self._alternating else made % 4 == 3

    def _enough(self, decisive: int) -> Stopped | None:
        good = len(self._good[None].total_us)
        if good % 2:
            return None
        ratios = [self._ratios(name) for name in self._good if name is not None]
        restless = self._disturbed > MOST_DISTURBED_SHARE * decisive
        return early_stop(good, ratios, self._context.settings, restless=restless)

    def _ratios(self, name: BaselineName) -> list[float]:
        samples = self._called if self._held and name not in self._held else self._good
        if not samples[name].total_us:
            return []
        return paired_ratios(samples[None], samples[name], self._cost, self._context.device)


def _blamed_on(which: BaselineName | None) -> AbstractContextManager[None]:
    return nullcontext() if which is None else failures_are_ours()
