"""`apply`: a kernel in the places of a model that it fits, kept where the model gets faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from agent.deployment.load import judged, load
from agent.deployment.model_times import ModelTimes
from agent.deployment.places import Places
from agent.optimize import Result
from agent.recording.difference import difference
from agent.recording.model_file import words
from agent.recording.recorded_calls import calls_of, run
from evaluator.judge.timing.interval import Interval
from problems.errors import UsageError


@dataclass(frozen=True)
class Applied:
    model: nn.Module
    """Another object than the one given only where all of it is replaced."""
    places: Places
    kept: bool
    """Whether `model` has the kernel."""
    speedup: float
    """Of the replaced parts, within the model."""
    share: float
    """Of the model's time, which these parts had."""
    eager: Interval
    """How much faster the whole model is."""
    compiled: Interval | str
    """The same with both compiled by torch.compile, or why there is no such figure."""
    difference: float
    """Between the model's results before and after, by their norm."""

    def undo(self) -> nn.Module:
        """The model as it was."""
        return self.places.put(kernel=False)

    def lines(self) -> Iterator[str]:
        compiled = self.compiled if isinstance(self.compiled, str) else _words(self.compiled)
        yield (
            f"{', '.join(self.places.loaded) or 'the model'} {self.speedup:.2f}x; it had"
            f" {self.share:.0%} of the time; model {_words(self.eager)}; compiled {compiled}"
        )
        yield f"the model's results differ by {self.difference:.1e} of their size"
        reasons: dict[str, list[str]] = {}
        for name, each in self.places.loaded.items():
            if each.calls["original"]:
                reasons.setdefault(each.last_reason, []).append(name or "the model")
        for reason, names in reasons.items():
            yield f"the original ran, too, in {', '.join(names)}: {reason}"
        if self.eager.low <= 1.0:
            yield f"nothing is gained{'' if self.kept else ': the model is as it was'}"


def apply(
    model: nn.Module,
    kernel: Path | str | Result,
    inputs: Any,
    *,
    module: str | None = None,
    against: Literal["eager", "compile", "max_autotune"] = "eager",
    keep: Literal["faster", "always"] = "faster",
    compiled: bool = True,
    seconds: float = 5.0,
    allow_unsafe: bool = False,
) -> Applied:
    """Put a kernel in place of `module`, or of all submodules that it fits, as `load` does.

    `inputs` are the model's: a tuple of arguments, a dict of them by name, or a list of such. With
    them the model is timed with and without the kernel, for so many seconds, and as long again
    where both are `compiled`. Weights, names in the state dict and hooks stay. Where nothing is
    gained, the model stays as it was. Raises `UsageError` where the kernel fits nowhere, or changes
    the model's results.
    """
    calls = calls_of(inputs)
    loaded = partial(load, kernel, against=against, allow_unsafe=allow_unsafe)
    _, _, proof = judged(kernel, allow_unsafe=allow_unsafe)
    places = Places.of(model, module, proof, loaded)
    kept = False
    try:
        before, after = (run(places.put(kernel), calls) for kernel in (False, True))
        off, allowed = difference(before, after)
        if not off <= allowed:
            raise UsageError(
                f"with the kernel the model's results differ by {off:.1e} of their size,"
                f" more than {allowed:.0e}: it is left out"
            )
        times = ModelTimes(places, calls, seconds)
        speedup, share = times.of_places()
        eager = times.ratio(lambda form: form)
        both = _compiled(times) if compiled else "not timed"
        kept = keep == "always" or eager.low > 1.0
    finally:
        placed = places.put(kept)
    return Applied(placed, places, kept, speedup, share, eager, both, off)


def _compiled(times: ModelTimes) -> Interval | str:
    try:
        return times.ratio(torch.compile)
    except Exception as error:  # noqa: BLE001  (of any kind: many programs take part)
        return f"not possible here ({words(error)})"


def _words(ratio: Interval) -> str:
    return f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"
