"""The search for a change of the reference that leads to a wrong output: a module for a worker.

The reference runs again in eval() and in lower precision. Where an output is just what comes out
then, that is what the candidate does. Of changes of one kind the one that fits best is reported,
with those that fit as well.

This may end its process (`counterfactual.py`), so it never runs in the judge. It imports nothing
that a worker has not imported anyway: a fresh one begins at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from evaluator.judge.explaining.reference_modes import (
    IN_EVAL,
    Mode,
    depends_on_mode,
    eval_modes,
    in_eval,
    one_product_modes,
    precision_modes,
)
from evaluator.judge.problem.kept_buffers import buffers_kept
from evaluator.mismatch_pattern import Pattern
from evaluator.worker.values import flatten

SECONDS = 2.0
"""After which no further change is tried."""
ANSWER_BYTES = 4096
_CLOSER = 20.0
"""So many times closer must it be to the changed reference than to the right one."""
_AS_GOOD = 2.0
"""A change fits as well as the best one if its error is at most so many times as large."""
_MOST_NAMED = 2
"""Of the changes that fit as well."""
_FEWEST_TO_CORRELATE = 64
"""With fewer elements, one of many precisions fits by luck."""
_ALIKE = 0.7
"""Correlation of errors from which on they are those of a lower precision."""
_AS_ALIKE = 0.02
"""Two precisions whose correlations differ by less can't be told apart."""
_ALIKE_SIZE = 2.0
"""How many times larger or smaller such errors may be."""
_SMALL = 0.03
"""Errors of lower precision have at most this RMSE, relative to the outputs' rms."""
_INSENSITIVE = 1e-3
"""An output that changes by less than this, relative to its rms, hardly depends on the inputs."""


@dataclass(frozen=True)
class Counterfactual:
    """A change of the reference that explains an output."""

    code: Pattern
    words: str
    """`operation 2 of 4 (mul by 0.125) is left out`."""


@dataclass(frozen=True)
class _Errors:
    """A candidate's errors beside those of the reference in a lower precision."""

    name: str
    alike: float
    """Correlation."""
    size: float
    """The candidate's over the other's."""


class CounterfactualSearch(torch.nn.Module):
    """Called on a candidate's output and the inputs that led to it, it answers with words."""

    kind: ClassVar[type[torch.nn.Module]]
    """The reference's class."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.model = self.kind(*arguments)

    def forward(self, actual: Tensor, output: int, limit: float, *arguments: Any) -> Tensor:
        """The answer, uint8, shape [ANSWER_BYTES]; `read` says what it means.

        Args:
            actual: the candidate's wrong output.
            output: which of the reference's outputs it should have been.
            limit: RMSE relative to the changed reference's rms, below which it is what comes out.
            arguments: of the call.
        """
        found = _Search(self.model, list(arguments), actual, output, limit).run()
        answer = f"{found.code}\n{found.words}".encode()[:ANSWER_BYTES] if found else b""
        return torch.tensor(list(answer.ljust(ANSWER_BYTES, b"\0")), dtype=torch.uint8)


def read(answer: Tensor) -> Counterfactual | None:
    """What a search found; None where that is nothing."""
    code, _, words = bytes(answer.tolist()).rstrip(b"\0").decode(errors="replace").partition("\n")
    pattern = next((each for each in Pattern if each == code), None)
    return Counterfactual(pattern, words) if pattern else None


class _Search:
    def __init__(
        self,
        model: torch.nn.Module,
        arguments: list[Any],
        actual: Tensor,
        output: int,
        limit: float,
    ) -> None:
        self._model = model
        self._arguments = arguments
        self._actual = actual
        self._output = output
        self._limit = limit
        self._end = time.monotonic() + SECONDS

    def run(self) -> Counterfactual | None:
        right = self._call(self._model)
        self._own_error = _error(self._actual, right)
        return (
            self._in_eval()
            or self._less_precise(right)
            or self._less_precise_in_eval()
            or self._insensitive(right)
            or self._less_precise_in_one_product(right)
        )

    def _call(self, module: Callable[..., Any], arguments: list[Any] | None = None) -> Tensor:
        with torch.no_grad(), buffers_kept(self._model):
            given = self._arguments if arguments is None else arguments
            return flatten(module(*given))[self._output]

    def _fit(self, result: Tensor) -> float | None:
        """The relative error beside this result; None where it is not what comes out."""
        if result.shape != self._actual.shape:
            return None
        error = _error(self._actual, result)
        scale = _rms(result)
        fits = error <= self._limit * scale and error * _CLOSER < self._own_error
        return error / scale if fits and scale else None

    def _best(self, found: list[tuple[float, Counterfactual]]) -> Counterfactual | None:
        """What fits best, and what fits as well."""
        if not found:
            return None
        found.sort(key=lambda pair: pair[0])
        error, best = found[0]
        equals = dict.fromkeys(
            other.words
            for fit, other in found[1:]
            if fit <= max(_AS_GOOD * error, self._limit / 100) and other.words != best.words
        )
        words = f"{best.words} (relative error {error:.1g} then)"
        named = [*equals][:_MOST_NAMED]
        if named:
            words += f"; as good an explanation: {'; or '.join(named)}"
        if len(equals) > len(named):
            words += f"; and {len(equals) - len(named)} more"
        return Counterfactual(best.code, words)

    def _insensitive(self, right: Tensor) -> Counterfactual | None:
        """Quite other inputs lead to nearly the same output: nothing can be told."""
        if not any(isinstance(a, Tensor) and a.is_floating_point() for a in self._arguments):
            return None
        other = self._tried(lambda: self._call(self._model, _scaled_down(self._arguments)))
        if other is None or other.shape != right.shape or not right.numel():
            return None
        if _error(other, right) > _INSENSITIVE * _rms(right):
            return None
        words = "the output hardly depends on the inputs, so that no cause can be told from it"
        return Counterfactual(Pattern.INSENSITIVE, words)

    def _in_eval(self) -> Counterfactual | None:
        found: list[tuple[float, Counterfactual]] = []
        for mode in eval_modes(self._model, lambda: self._call(self._model)):
            self._note(found, self._tried(mode.run), Pattern.EVAL_MODE, mode.words)
        return self._best(found)

    def _less_precise_in_eval(self) -> Counterfactual | None:
        if not depends_on_mode(self._model):
            return None
        with in_eval(list(self._model.modules())):
            base = self._tried(lambda: self._call(self._model))
            if base is None or base.shape != self._actual.shape:
                return None
            found = self._less_precise(base)
        if found is not None:
            return Counterfactual(Pattern.EVAL_MODE, f"{IN_EVAL}; and {found.words}")
        error = _error(self._actual, base)
        if error * _CLOSER >= self._own_error or error > _SMALL * _rms(base):
            return None
        words = f"{IN_EVAL}; and it is less precise (relative error {error / _rms(base):.1g} then)"
        return Counterfactual(Pattern.EVAL_MODE, words)

    def _less_precise_in_one_product(self, right: Tensor) -> Counterfactual | None:
        if right.numel() < _FEWEST_TO_CORRELATE:
            return None
        return self._less_precise(
            right, one_product_modes(self._model, self._arguments, self._call)
        )

    def _less_precise(
        self, base: Tensor, modes: Iterator[Mode] | None = None
    ) -> Counterfactual | None:
        """Whether its errors beside `base`, the reference's output, are a lower precision's."""
        alike = [
            each
            for each in self._errors_by_precision(base, modes)
            if each.alike >= _ALIKE and 1 / _ALIKE_SIZE <= each.size <= _ALIKE_SIZE
        ]
        if not alike:
            return None
        most = max(each.alike for each in alike)
        alike.sort(key=lambda each: -each.alike)
        best = [each for each in alike if each.alike > most - _AS_ALIKE]
        names = dict.fromkeys(name for each in best for name in each.name.split(" or "))
        words = f"the arithmetic is in {' or '.join(names)} (correlation of errors {most:.2f})"
        return Counterfactual(Pattern.PRECISION, words)

    def _errors_by_precision(
        self, base: Tensor, modes: Iterator[Mode] | None = None
    ) -> list[_Errors]:
        if base.dtype is not torch.float32 or self._actual.dtype is not torch.float32:
            return []
        errors = (self._actual.double() - base.double()).flatten()
        size, scale = _rms(errors), _rms(base)
        if not 0 < size <= _SMALL * scale:
            return []
        found = []
        if modes is None:
            modes = precision_modes(self._model, self._arguments, self._call, base.device)
        for mode in modes:
            result = self._tried(mode.run)
            if result is None or result.shape != base.shape:
                continue
            theirs = (result.double() - base.double()).flatten()
            if not _rms(theirs) or not bool(torch.isfinite(theirs).all()):
                continue
            alike = _correlation(errors, theirs)
            found.append(_Errors(mode.words, alike, size / _rms(theirs)))
        return found

    def _note(
        self,
        found: list[tuple[float, Counterfactual]],
        result: Tensor | None,
        code: Pattern,
        words: str,
    ) -> None:
        fit = None if result is None else self._fit(result)
        if fit is not None:
            found.append((fit, Counterfactual(code, words)))

    def _tried(self, run: Callable[[], Tensor]) -> Tensor | None:
        """What comes out; None where it raises, or time is up."""
        if time.monotonic() > self._end:
            return None
        try:
            return run()
        except torch.OutOfMemoryError:
            self._end = 0.0
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            # Not every change makes sense to every operator, or to what follows.
            pass
        return None


def _correlation(some: Tensor, others: Tensor) -> float:
    return float(some @ others) / max(float(some.norm()) * float(others.norm()), 1e-300)


def _scaled_down(arguments: list[Any]) -> list[Any]:
    """Each real number times one of its own between 1/2 and 1."""
    torch.manual_seed(0)
    return [
        value * (0.5 + 0.5 * torch.rand_like(value))
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for value in arguments
    ]


def _error(actual: Tensor, other: Tensor) -> float:
    return _rms(actual.double() - other.double())


def _rms(tensor: Tensor) -> float:
    return float(tensor.double().square().mean().sqrt())
