"""A model with a kernel beside itself without: calls in alternation, both in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import nn

from agent.deployment.places import Places
from agent.recording.recorded_calls import Call
from evaluator.judge.timing.interval import FEWEST_VALUES, Interval, median_interval

_FEWEST_PAIRS = 2 * FEWEST_VALUES
_MOST_PAIRS = 500
_SPAN_S = 2e-3
"""Shorter calls are repeated until they take so long."""


@dataclass(frozen=True)
class ModelTimes:
    places: Places
    calls: Sequence[Call]
    seconds: float

    @torch.no_grad()
    def ratio(self, form: Callable[[nn.Module], Callable[..., Any]]) -> Interval:
        """How much faster the model is with the kernel: medians of pairs, the first of which is
        the one with the kernel in every second pair. `form` gives what is called of a model."""
        forms = {kernel: form(self.places.put(kernel)) for kernel in (False, True)}
        repeats = 1

        def timed(kernel: bool) -> float:
            self.places.put(kernel)
            self._run(forms[kernel])  # without what the change costs
            self._wait()
            started = time.perf_counter()
            for _ in range(repeats):
                self._run(forms[kernel])
            self._wait()
            return time.perf_counter() - started

        warm = [timed(kernel) for kernel in (False, True, False, True)]
        repeats += int(_SPAN_S / min(warm))
        ratios: list[float] = []
        end = time.monotonic() + self.seconds
        while len(ratios) < _FEWEST_PAIRS or (len(ratios) < _MOST_PAIRS and time.monotonic() < end):
            first = len(ratios) % 2 == 1
            pair = {kernel: timed(kernel) for kernel in (first, not first)}
            ratios.append(pair[False] / pair[True])
        return median_interval(ratios)

    @torch.no_grad()
    def of_places(self) -> tuple[float, float]:
        """How much faster the replaced parts are within the model, and their share of its time."""
        marks: list[Any] = []
        inside: dict[bool, list[float]] = {False: [], True: []}
        shares: list[float] = []
        parts = {id(each): each.original for each in self.places.loaded.values()}.values()
        # A kernel has the hooks of what it replaces.
        handles = [
            hook(lambda *_: marks.append(self._mark()))
            for part in parts
            for hook in (part.register_forward_pre_hook, part.register_forward_hook)
        ]
        try:
            for number in range(2 * _FEWEST_PAIRS):
                kernel = number % 2 == 1
                model = self.places.put(kernel)
                self._run(model)
                marks.clear()
                first = self._mark()
                self._run(model)
                last = self._mark()
                self._wait()
                spans = zip(marks[::2], marks[1::2], strict=True)
                inside[kernel].append(sum(_between(*span) for span in spans))
                if not kernel:
                    shares.append(inside[kernel][-1] / _between(first, last))
        finally:
            for handle in handles:
                handle.remove()
        return median(inside[False]) / median(inside[True]), median(shares)

    def _run(self, form: Callable[..., Any]) -> None:
        for args, kwargs in self.calls:
            form(*args, **kwargs)

    @property
    def _on_gpu(self) -> bool:
        return any(each.is_cuda for each in self.places.whole.parameters())

    def _wait(self) -> None:
        if self._on_gpu:
            torch.cuda.synchronize()

    def _mark(self) -> float | torch.cuda.Event:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def _between(first: Any, last: Any) -> float:
    return float(last - first if isinstance(first, float) else first.elapsed_time(last) / 1e3)
