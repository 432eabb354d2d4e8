"""The search for a change of the reference that leads to a wrong output: a module for a worker.

The reference runs again and again with one operation changed each time: left out, over another
axis, with its operands swapped, with another constant, as another function, without one of its
parameters, or with nothing after it. Where an output is just what comes out then, that is what the
candidate does, and the operation is the first after which its intermediate results differ.

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
from torch.func import functional_call
from torch.utils._pytree import tree_leaves

from evaluator.judge.forward_operators import Altered, Onlooker, Recorder
from evaluator.judge.kept_buffers import buffers_kept
from evaluator.judge.operation_changes import Change, Turn
from evaluator.worker.values import flatten

SECONDS = 2.0
"""After which no further change is tried."""
ANSWER_BYTES = 4096
_CLOSER = 20.0
"""So many times closer must it be to the changed reference than to the right one."""


@dataclass(frozen=True)
class Counterfactual:
    """A change of the reference that explains an output."""

    code: str
    """A pattern: unfinished, missing_operation, missing_parameter, wrong_axis, ..."""
    words: str
    """`operation 2 of 4 (mul by 0.125) is left out`."""


class CounterfactualSearch(torch.nn.Module):  # type: ignore[misc]
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
    return Counterfactual(code, words) if code else None


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
        recorder = Recorder()
        with recorder:
            right = self._call(self._model)
        self._own_error = _error(self._actual, right)
        return (
            self._unfinished(recorder)
            or self._changed(recorder, Turn.EARLY)
            or self._without_parameter()
            or self._changed(recorder, Turn.LATE)
            or self._changed(recorder, Turn.LAST)
        )

    def _call(self, module: Callable[..., Any]) -> Tensor:
        with torch.no_grad(), buffers_kept(self._model):
            return flatten(module(*self._arguments))[self._output]

    def _explains(self, result: Tensor) -> bool:
        if result.shape != self._actual.shape:
            return False
        error = _error(self._actual, result)
        scale = float(result.double().square().mean().sqrt())
        return error <= self._limit * scale and error * _CLOSER < self._own_error

    def _unfinished(self, recorder: Recorder) -> Counterfactual | None:
        """Run once more, looking at every intermediate result."""
        found: list[int] = []

        def look(number: int, result: Any) -> None:
            tensors = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
            if number < recorder.count and any(map(self._explains, tensors)):
                found.append(number)

        with Onlooker(look):
            self._call(self._model)
        if not found:
            return None
        done = found[-1]
        following = recorder.names[done]
        return Counterfactual(
            "unfinished",
            f"it is the result of operation {done} of {recorder.count}"
            f" ({recorder.names[done - 1]}): what follows, from {following} on, is left out",
        )

    def _changed(self, recorder: Recorder, turn: Turn) -> Counterfactual | None:
        for number, listed in enumerate(recorder.changes, 1):
            for change in listed:
                if change.turn is not turn:
                    continue
                if time.monotonic() > self._end:
                    return None
                result = self._with(number, change)
                if result is not None and self._explains(result):
                    return Counterfactual(
                        change.code,
                        f"operation {number} of {recorder.count}"
                        f" ({recorder.names[number - 1]}) {change.words}",
                    )
        return None

    def _with(self, number: int, change: Change) -> Tensor | None:
        try:
            with Altered(number, change):
                return self._call(self._model)
        except torch.OutOfMemoryError:
            self._end = 0.0
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            # Not every change makes sense to every operator, or to what follows.
            pass
        return None

    def _without_parameter(self) -> Counterfactual | None:
        for code, words, state in _other_states(self._model):
            if time.monotonic() > self._end:
                return None
            result = self._in_state(state)
            if result is not None and self._explains(result):
                return Counterfactual(code, words)
        return None

    def _in_state(self, state: dict[str, Tensor]) -> Tensor | None:
        try:
            return self._call(lambda *arguments: functional_call(self._model, state, arguments))
        except RuntimeError:
            return None


def _other_states(model: torch.nn.Module) -> Iterator[tuple[str, str, dict[str, Tensor]]]:
    """Parameters as they are when nobody uses them, one or a scale with its shift; or shifted."""
    own = {
        name: value
        for name, value in [*model.named_parameters(), *model.named_buffers()]
        if value.is_floating_point()
    }
    unused = "missing_parameter"
    for name, value in own.items():
        yield unused, f"`{name}` is not used", {name: torch.zeros_like(value)}
        yield unused, f"`{name}` is not used", {name: torch.ones_like(value)}
    for name, value in own.items():
        shift = f"{name.removesuffix('weight')}bias"
        if name.endswith("weight") and shift in own:
            neutral = {name: torch.ones_like(value), shift: torch.zeros_like(own[shift])}
            yield unused, f"`{name}` and `{shift}` are not used", neutral
    for name, value in own.items():
        for dim in range(value.dim()):
            for step in (1, -1):
                words = f"`{name}` is read one element off along axis {dim}"
                yield "shifted_index", words, {name: value.roll(step, dim)}


def _error(actual: Tensor, other: Tensor) -> float:
    return float((actual.double() - other.double()).square().mean().sqrt())
