"""Turns whose kernels are built while the model writes, against turns that build afterwards.

A real loop asks a model on loopback and judges its kernels. Turns come in pairs whose answers have
the same kernel and the same prose, but for a comment in what is compiled. In every other pair the
turn that builds ahead comes first. A turn begins when its prompt is sent and ends when its record
is on disk. Audits are off: they take longer than anything else, and only some kernels meet them.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from evaluator.evaluation import EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.record import Record
from experiments.bench.loop.loopback_model import LETTERS_A_TOKEN, LoopbackModel
from experiments.bench.speed.catalogue import BenchCandidate, catalogue, runnable
from experiments.bench.suites.machine import Machine, machine

if TYPE_CHECKING:
    from agent.record.events import Event
    from evaluator.evaluation import Evaluation
    from tools.profiling.profile_report import Profile

_BEFORE, _AFTER = (400, 1200), (50, 300)
"""Tokens of prose before and after the kernel: a uniform draw from each."""
_THOUGHT = (
    "Each row is read once and written once, so the kernel is limited by memory, and what counts"
    " is that neighbouring threads read neighbouring words. "
)
_INCLUDE = "#include <torch/extension.h>"
_RESAMPLES = 2000


class TurnSeconds(Record):
    """One turn."""

    whole: float
    verdict: float
    """From the end of the answer to the record of the turn."""
    build: float
    """Of the verdict; what was built ahead is found in the cache."""
    status: Status


class Pair(Record):
    """The same kernel and prose, twice."""

    ahead: TurnSeconds
    afterwards: TurnSeconds
    tokens: int


class RateFigures(Record):
    """All pairs at one rate of the model. Medians; `ratio` is afterwards over ahead."""

    tokens_per_second: float
    ahead_s: float
    afterwards_s: float
    ratio: float
    ratio_low: float
    """The interval of 95 %, by resampling pairs."""
    ratio_high: float
    verdict_ahead_s: float
    verdict_afterwards_s: float
    pairs: tuple[Pair, ...]


class StreamingFigures(Record):
    """Each rate, on one machine."""

    machine: Machine
    litellm: str
    timing_seconds: float
    rates: tuple[RateFigures, ...]


class SwitchedExecutor(LocalExecutor):
    """Builds ahead only while it is told to."""

    ahead = False

    def build_ahead(self, request: EvaluationRequest) -> None:
        """Nothing, in every other turn."""
        if self.ahead:
            super().build_ahead(request)


class TurnClock:
    """Times the turns of a run that takes one after the other, and switches its executor."""

    def __init__(self, executor: SwitchedExecutor) -> None:
        self._executor = executor
        self._order = cycle((True, False, False, True))
        self._began = self._answered = 0.0
        self.turns: list[tuple[bool, TurnSeconds]] = []

    def notice(self, event: Event) -> None:
        """Take the time of a turn's begin, answer and end."""
        from agent.record.events import ModelAnswered, TurnRecorded, TurnStarted

        now = time.monotonic()
        if isinstance(event, TurnStarted):
            self._executor.ahead = next(self._order)
            self._began = now
        elif isinstance(event, ModelAnswered):
            self._answered = now
        elif isinstance(event, TurnRecorded):
            verdict = event.record.evaluation
            turn = TurnSeconds(
                whole=now - self._began,
                verdict=now - self._answered,
                build=verdict.seconds.build,
                status=verdict.status,
            )
            self.turns.append((self._executor.ahead, turn))


def measure_streaming(
    device: str,
    *,
    tokens_per_second: Sequence[float],
    pairs: int,
    timing_seconds: float,
    keep: Callable[[StreamingFigures], None] = lambda figures: None,
) -> StreamingFigures:
    """So many pairs at each rate, rounded up to as many of each kernel; after each rate `keep` is
    given the figures so far."""
    from importlib.metadata import version

    figures = StreamingFigures(
        machine=machine([device]),
        litellm=version("litellm"),
        timing_seconds=timing_seconds,
        rates=(),
    )
    right = [each for each in catalogue(runnable(device)[:1]) if each.expected is Status.CORRECT]
    kernels = [each for each in right if _INCLUDE in each.source]
    kernels = list({each.problem.id: each for each in kernels}.values())[:pairs]
    variants = count()
    with (
        tempfile.TemporaryDirectory(prefix="streaming-") as folder,
        SwitchedExecutor(device, cache=Path(folder) / "cache") as executor,
    ):
        # A problem's first verdict also sets the problem up: that happens in a run of its own.
        start = Path(folder) / "start"
        _run(start, executor, device, kernels, len(kernels), 1000.0, timing_seconds, variants)
        for rate in tokens_per_second:
            run = Path(folder) / f"{rate:g}"
            done = _run(run, executor, device, kernels, pairs, rate, timing_seconds, variants)
            figures = figures.model_copy(update={"rates": (*figures.rates, _figures(rate, done))})
            keep(figures)
    return figures


def _run(
    run: Path,
    executor: SwitchedExecutor,
    device: str,
    kernels: Sequence[BenchCandidate],
    pairs: int,
    rate: float,
    timing_seconds: float,
    variants: Iterator[int],
) -> list[Pair]:
    """One run of independent samples: as many pairs a kernel as make up `pairs`."""
    from agent.config.options import RunOptions
    from agent.llm.client import LiteLLMClient
    from agent.loop.drive import drive
    from agent.record.store import open_store
    from agent.resolution import resolve

    chance = random.Random(0)
    each = -(-pairs // len(kernels))
    answers = [
        text for kernel in kernels for _ in range(each) for text in _twice(kernel, chance, variants)
    ]
    clock = TurnClock(executor)
    with LoopbackModel(iter(answers), rate) as model:
        resolution = resolve(
            RunOptions.model_validate(
                {
                    "problems": tuple(kernel.problem.id for kernel in kernels),
                    "model": "hosted_vllm/loopback",
                    "model_args": {"api_base": model.address},
                    "strategy": "sample",
                    "budget": 2 * each,
                    "workers": 1,
                    "device": device,
                    "rival": "none",
                    "confirm": 0,
                    "audit": "never",
                    "timing_seconds": timing_seconds,
                    "output": run,
                }
            )
        )
        with open_store(resolution.config) as store:
            drive(
                resolution.config,
                resolution.problems,
                client=LiteLLMClient(),
                executor=executor,
                profiler=_no_profile,
                store=store,
                watch=clock,
            )
    found = []
    for number, text in enumerate(answers[::2]):
        by_kind = dict(clock.turns[2 * number : 2 * number + 2])
        tokens = len(text) // LETTERS_A_TOKEN
        found.append(Pair(ahead=by_kind[True], afterwards=by_kind[False], tokens=tokens))
    return found


def _twice(kernel: BenchCandidate, chance: random.Random, variants: Iterator[int]) -> list[str]:
    """Two answers that differ in a comment of what is compiled: caches go by content."""
    before, after = (_prose(chance.randint(*tokens)) for tokens in (_BEFORE, _AFTER))
    sources = [
        kernel.source.replace(_INCLUDE, f"{_INCLUDE}  // variant {number:06}")
        for number in (next(variants), next(variants))
    ]
    return [f"{before}\n\n```python\n{source}```\n\n{after}\n" for source in sources]


def _prose(tokens: int) -> str:
    letters = tokens * LETTERS_A_TOKEN
    return (_THOUGHT * (letters // len(_THOUGHT) + 1))[:letters]


def _no_profile(request: EvaluationRequest, evaluation: Evaluation) -> Profile:
    raise AssertionError("independent samples are not profiled")


def _figures(rate: float, pairs: Sequence[Pair]) -> RateFigures:
    chance = random.Random(0)
    ratios = sorted(_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLES))
    return RateFigures(
        tokens_per_second=rate,
        ahead_s=median(pair.ahead.whole for pair in pairs),
        afterwards_s=median(pair.afterwards.whole for pair in pairs),
        ratio=_ratio(pairs),
        ratio_low=ratios[int(0.025 * _RESAMPLES)],
        ratio_high=ratios[int(0.975 * _RESAMPLES) - 1],
        verdict_ahead_s=median(pair.ahead.verdict for pair in pairs),
        verdict_afterwards_s=median(pair.afterwards.verdict for pair in pairs),
        pairs=tuple(pairs),
    )


def _ratio(pairs: Sequence[Pair]) -> float:
    """Of the median turn that builds afterwards to the median turn that builds ahead."""
    afterwards = median(pair.afterwards.whole for pair in pairs)
    return afterwards / median(pair.ahead.whole for pair in pairs)


def told(figures: StreamingFigures) -> list[str]:
    """The figures as lines for a person."""
    lines = [f"{figures.machine}; litellm {figures.litellm}"]
    for found in figures.rates:
        turns = [turn for pair in found.pairs for turn in (pair.ahead, pair.afterwards)]
        right = sum(turn.status is Status.CORRECT for turn in turns)
        tokens = [pair.tokens for pair in found.pairs]
        lines += [
            f"{found.tokens_per_second:g} tokens/s, {len(found.pairs)} pairs of answers of"
            f" {min(tokens)} to {max(tokens)} tokens; {right} of {len(turns)} turns correct",
            f"  a turn: {found.afterwards_s:.2f} s, built ahead {found.ahead_s:.2f} s:"
            f" {found.ratio:.3f} times ({found.ratio_low:.3f} to {found.ratio_high:.3f})",
            f"  from the answer's end to the record: {found.verdict_afterwards_s:.2f} s, built"
            f" ahead {found.verdict_ahead_s:.2f} s",
        ]
    return lines
