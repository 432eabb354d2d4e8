"""What would have to be otherwise in the reference for a candidate's wrong output to be right.

The reference runs again and again with one operation changed each time: left out, over another
axis, with its operands swapped, with another constant, as another function, without one of its
parameters, or with nothing after it. Where an output is just what comes out then, that is what the
candidate does, and the operation is the first after which its intermediate results differ. Only a
few seconds are spent on this, and only on a candidate that is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evaluator.evaluation import Precision
from evaluator.judge.operation_changes import Change, changes
from evaluator.judge.reference import Reference, flatten

_SECONDS = 2.0
_CLOSE = {
    Precision.FP32: 1e-4,
    Precision.TF32: 1e-2,
    Precision.FP16: 1e-2,
    Precision.BF16: 3e-2,
}
"""RMSE relative to the changed reference's rms, below which an output is what comes out."""
_ASSERTING = (
    "index", "gather", "scatter", "embedding", "take", "put", "nll_loss", "one_hot",
    "binary_cross_entropy", "max_unpool", "repeat_interleave",
)  # fmt: skip
"""Operators that check values on the device."""
_TURNS = ("aten::t", "aten::transpose", "aten::permute")
_CLOSER = 20.0
"""So many times closer must it be to the changed reference than to the right one."""


@dataclass(frozen=True)
class Counterfactual:
    """A change of the reference that explains an output."""

    code: str
    """A pattern: unfinished, missing_operation, missing_parameter, wrong_axis, ..."""
    words: str
    """`operation 2 of 4 (mul by 0.125) is left out`."""


def find_counterfactual(
    reference: Reference,
    arguments: list[Any],
    actual: list[Tensor],
    output: int,
    precision: Precision,
) -> Counterfactual | None:
    """The first change found after which `actual[output]` is right; None where there is none.

    Args:
        reference: in the state in which the candidate was judged.
        arguments: of the call; not changed.
        actual: the candidate's sealed outputs.
        output: which of them is wrong.
    """
    try:
        return _Search(reference, arguments, actual[output], output, precision).run()
    except torch.OutOfMemoryError:
        # Words are not worth more than the verdict, which stands already.
        return None


def can_be_changed(device: torch.device, operations: Sequence[str]) -> bool:
    """Whether a reference of these operations may run with changes without risk to the judge.

    On a GPU an index out of range is found by an assertion on the device, after which this
    process could use it no more; on a CPU it raises.
    """
    return device.type == "cpu" or not any(name.startswith(_ASSERTING) for name in operations)


class _Search:
    def __init__(
        self,
        reference: Reference,
        arguments: list[Any],
        actual: Tensor,
        output: int,
        precision: Precision,
    ) -> None:
        self._reference = reference
        self._arguments = arguments
        self._actual = actual
        self._output = output
        self._limit = _CLOSE[precision]
        self._end = time.monotonic() + _SECONDS

    def run(self) -> Counterfactual | None:
        actual = self._actual.double()
        if not bool(torch.isfinite(actual).all()) or float(actual.std()) == 0.0:
            # Of one value all over, zeros say all that there is to say.
            return None
        recorder = _Recorder()
        with recorder:
            right = self._call(self._reference.model)
        self._own_error = _error(self._actual, right)
        found = self._unfinished(recorder)
        if found is not None or not can_be_changed(self._actual.device, recorder.names):
            return found
        return (
            self._changed(recorder, first=True)
            or self._without_parameter()
            or self._changed(recorder, first=False)
        )

    def _call(self, module: Callable[..., Any]) -> Tensor:
        with torch.no_grad(), self._reference.buffers_kept(self._reference.model):
            return flatten(module(*self._arguments))[self._output]

    def _explains(self, result: Tensor) -> bool:
        if result.shape != self._actual.shape:
            return False
        error = _error(self._actual, result)
        scale = float(result.double().square().mean().sqrt())
        return error <= self._limit * scale and error * _CLOSER < self._own_error

    def _unfinished(self, recorder: _Recorder) -> Counterfactual | None:
        """Run once more, looking at every intermediate result."""
        found: list[int] = []

        def look(number: int, result: Any) -> None:
            tensors = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
            if number < recorder.count and any(map(self._explains, tensors)):
                found.append(number)

        with _Onlooker(look):
            self._call(self._reference.model)
        if not found:
            return None
        done = found[-1]
        following = recorder.names[done]
        return Counterfactual(
            "unfinished",
            f"it is the result of operation {done} of {recorder.count}"
            f" ({recorder.names[done - 1]}): what follows, from {following} on, is left out",
        )

    def _changed(self, recorder: _Recorder, *, first: bool) -> Counterfactual | None:
        for number, listed in enumerate(recorder.changes, 1):
            for change in listed:
                if change.likely is not first:
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
            with _Altered(number, change):
                return self._call(self._reference.model)
        except torch.OutOfMemoryError:
            self._end = 0.0
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            # Not every change makes sense to every operator, or to what follows.
            pass
        return None

    def _without_parameter(self) -> Counterfactual | None:
        for code, words, state in _other_states(self._reference.model):
            if time.monotonic() > self._end:
                return None
            result = self._in_state(state)
            if result is not None and self._explains(result):
                return Counterfactual(code, words)
        return None

    def _in_state(self, state: dict[str, Tensor]) -> Tensor | None:
        try:
            return self._call(
                lambda *arguments: functional_call(self._reference.model, state, arguments)
            )
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


def _is_view(func: Any, args: tuple[Any, ...], result: Any) -> bool:
    """Whether an operator only looks at a tensor in another way. Transposing a square one is more:
    it can be forgotten."""
    if func._schema.is_mutable or not isinstance(result, Tensor):
        return False
    if str(func._schema.name) in _TURNS and result.shape == args[0].shape:
        return False
    place = result.untyped_storage().data_ptr()
    return any(
        isinstance(t, Tensor) and t.untyped_storage().data_ptr() == place for t in tree_leaves(args)
    )


class _Counting(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operators that make something, from 1 on."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asking to be skipped would import the compiler."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if _is_view(func, args, result):
            return result
        self.count += 1
        return self.made(func, args, kwargs, result)

    def made(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """What to give on in place of `result`."""
        return result


class _Recorder(_Counting):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.changes: list[list[Change]] = []

    def made(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        self.names.append(_told(func, args))
        self.changes.append(list(changes(func, args, kwargs, result)))
        return result


class _Onlooker(_Counting):
    def __init__(self, look: Callable[[int, Any], None]) -> None:
        super().__init__()
        self._look = look

    def made(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        with torch.utils._python_dispatch._disable_current_modes():
            self._look(self.count, result)
        return result


class _Altered(_Counting):
    def __init__(self, number: int, change: Change) -> None:
        super().__init__()
        self._number = number
        self._change = change

    def made(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        if self.count != self._number:
            return result
        other = self._change.apply(func, args, kwargs)
        first, mine = _first(other), _first(result)
        if first.shape != mine.shape:
            raise ValueError("another shape")
        return other


def _first(result: Any) -> Tensor:
    return next(t for t in tree_leaves(result) if isinstance(t, Tensor))


def _told(func: Any, args: tuple[Any, ...]) -> str:
    """`mul by 0.125`; `sum over 1`; `mm`."""
    name = str(func._schema.name).removeprefix("aten::").strip("_")
    return f"{name}{''.join(_figures(func, args))}"


def _figures(func: Any, args: tuple[Any, ...]) -> Iterator[str]:
    for known, value in zip(func._schema.arguments, args, strict=False):
        if known.name == "dim" and value is not None:
            yield f" over {value}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f" by {value:g}"
