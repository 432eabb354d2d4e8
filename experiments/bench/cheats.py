"""What a cheater would return: outputs that must be refused on every sound problem.

Each cheat is as strong as it can be: where a module has several outputs, one is faked and the
others are right; where it has several parameters, one is ignored and the others are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor

from evaluator.judge.bounds.work import count_work
from evaluator.judge.explaining.reference_modes import to_bf16, to_tf32
from evaluator.judge.problem.exact_reference import ExactReference
from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision


class Cheat(StrEnum):
    """The kinds, in the order in which they are tried. `honest` is none and must be accepted."""

    HONEST = "honest"
    ZEROS = "zeros"
    CONSTANT = "constant"
    STALE = "stale"
    """What other inputs lead to."""
    INPUT = "input"
    HALF_OUTPUT = "half_output"
    """The second half of the rows left at zero."""
    HALF_INPUT = "half_input"
    """The second half of an input, along one dimension, not read."""
    PARAMETER = "parameter"
    """A parameter as construction left it, whatever was copied into it."""
    TF32 = "tf32"
    """Inputs and parameters with 10 bits of mantissa."""
    BF16 = "bf16"
    """Inputs and parameters with 7 bits of mantissa."""


@dataclass(frozen=True)
class Attempt:
    """Outputs to be judged, and a word on which part of them is faked."""

    outputs: list[Tensor]
    detail: str


@dataclass(frozen=True)
class NotApplicable:
    """The cheat can't be tried on this problem, and why."""

    reason: str


@dataclass
class Scene:
    """One problem with randomised parameters, one set of inputs, and what they lead to."""

    reference: Reference
    seed: int
    state: dict[str, Tensor] = field(init=False)
    arguments: list[Any] = field(init=False)
    expected: list[Tensor] = field(init=False)
    exact: list[Tensor] | None = field(init=False)
    accumulation: int = field(init=False)
    """Longest sum behind an output element, which the judge's rule makes room for."""

    def __post_init__(self) -> None:
        self.state = self.reference.randomised(self.seed)
        self.reference.set_state(self.state)
        self.arguments = self.reference.fresh_inputs(self.seed + 1)
        self.expected = self.run(self.arguments)
        exact = ExactReference(self.reference)
        self.exact, _ = exact.outputs(lambda: _copied(self.arguments))
        work = count_work(self.reference.model, self.arguments, Precision.FP32, probe=False)
        self.accumulation = work.accumulation

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [tensor for tensor in self.arguments if isinstance(tensor, Tensor)]

    def run(self, arguments: Sequence[Any]) -> list[Tensor]:
        """The reference in the task's precision, on copies of these arguments."""
        return self.reference.expected(_copied(arguments))

    def run_with(self, state: dict[str, Tensor], arguments: Sequence[Any]) -> list[Tensor]:
        """The same with other parameters."""
        self.reference.set_state(state)
        outputs = self.run(arguments)
        self.reference.set_state(self.state)
        return outputs

    def faked(self, index: int, output: Tensor) -> list[Tensor]:
        """All outputs right but one."""
        return [output if i == index else right for i, right in enumerate(self.expected)]


def attempts(cheat: Cheat, scene: Scene) -> Iterator[Attempt | NotApplicable]:
    """Every way to try one kind of cheat, made when asked for: outputs may be large."""
    return _MAKERS[cheat](scene)


def _copied(arguments: Sequence[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, Tensor) else value for value in arguments]


def _honest(scene: Scene) -> Iterator[Attempt]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    outputs = scene.run(scene.arguments)
    torch.set_num_threads(threads)
    yield Attempt(outputs, "the reference on one thread")
    if scene.exact is not None:
        rounded = [
            right.to(like.dtype) for right, like in zip(scene.exact, scene.expected, strict=True)
        ]
        yield Attempt(rounded, "the fp64 reference, rounded")


def _zeros(scene: Scene) -> Iterator[Attempt]:
    for index, output in enumerate(scene.expected):
        yield Attempt(scene.faked(index, torch.zeros_like(output)), f"output {index}")


def _constant(scene: Scene) -> Iterator[Attempt]:
    # The mean over other inputs: over these, it would be the answer where there is one element.
    others = scene.run(scene.reference.fresh_inputs(scene.seed + 2))
    for index, (output, other) in enumerate(zip(scene.expected, others, strict=True)):
        values = other.double()
        mean = float(values[torch.isfinite(values)].mean())
        value = mean if output.is_floating_point() else round(mean)
        yield Attempt(scene.faked(index, torch.full_like(output, value)), f"output {index}")


def _stale(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    if not scene.inputs:
        yield NotApplicable("no tensor among the inputs")
        return
    others = scene.run(scene.reference.fresh_inputs(scene.seed + 3))
    for index, other in enumerate(others):
        yield Attempt(scene.faked(index, other), f"output {index}")


def _input(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    found = False
    for index, output in enumerate(scene.expected):
        for place, value in enumerate(scene.inputs):
            if value.numel() == output.numel() and value.dtype == output.dtype:
                found = True
                fake = value.reshape(output.shape)
                yield Attempt(scene.faked(index, fake), f"output {index} is input {place}")
    if not found:
        yield NotApplicable("no input has an output's size and dtype")


def _half_output(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    for index, output in enumerate(scene.expected):
        dim = next((d for d, size in enumerate(output.shape) if size > 1), None)
        if dim is None:
            yield NotApplicable("an output is a single number")
            continue
        yield Attempt(scene.faked(index, _halved(output, dim)), f"output {index}, dimension {dim}")


def _half_input(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    found = False
    for place, value in enumerate(scene.arguments):
        if not isinstance(value, Tensor):
            continue
        for dim, size in enumerate(value.shape):
            half = _halved(value, dim) if size > 1 else value
            if not torch.equal(half, value):
                found = True
                arguments = list(scene.arguments)
                arguments[place] = half
                where = f"input {place}, dimension {dim}"
                try:
                    outputs = scene.run(arguments)
                except (RuntimeError, ValueError, IndexError):
                    yield NotApplicable(f"the module raises without half of {where}")
                    continue
                yield Attempt(outputs, where)
    if not found:
        yield NotApplicable("no input has a half that could be left out")


def _parameter(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    seeded = scene.reference.seeded
    if not seeded:
        yield NotApplicable("no floating parameters or buffers")
    for name, value in seeded.items():
        if torch.equal(value, scene.state[name].cpu()):
            yield NotApplicable(f"{name} is a table that construction gives")
            continue
        outputs = scene.run_with({**scene.state, name: value}, scene.arguments)
        statistics = name.rsplit(".", 1)[-1] in ("running_mean", "running_var")
        if statistics and all(map(torch.equal, outputs, scene.expected)):
            yield NotApplicable(f"{name} is written and not read in train mode")
            continue
        yield Attempt(outputs, name)


def _tf32(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    return _rounded(scene, to_tf32)


def _bf16(scene: Scene) -> Iterator[Attempt | NotApplicable]:
    return _rounded(scene, to_bf16)


def _rounded(
    scene: Scene, round_off: Callable[[Tensor], Tensor]
) -> Iterator[Attempt | NotApplicable]:
    if not any(output.is_floating_point() for output in scene.expected):
        yield NotApplicable("the outputs are integers")
        return
    if not scene.state and not any(value.is_floating_point() for value in scene.inputs):
        yield NotApplicable("no floating inputs or parameters")
        return
    arguments = [
        round_off(value) if isinstance(value, Tensor) and value.is_floating_point() else value
        for value in scene.arguments
    ]
    state = {name: round_off(value) for name, value in scene.state.items()}
    outputs = scene.run_with(state, arguments)
    for index, output in enumerate(outputs):
        if output.is_floating_point():
            yield Attempt(scene.faked(index, output), f"output {index}")


def _halved(value: Tensor, dim: int) -> Tensor:
    result = value.clone()
    size = value.shape[dim]
    result.narrow(dim, (size + 1) // 2, size // 2).zero_()
    return result


_MAKERS: dict[Cheat, Callable[[Scene], Iterator[Attempt | NotApplicable]]] = {
    Cheat.HONEST: _honest,
    Cheat.ZEROS: _zeros,
    Cheat.CONSTANT: _constant,
    Cheat.STALE: _stale,
    Cheat.INPUT: _input,
    Cheat.HALF_OUTPUT: _half_output,
    Cheat.HALF_INPUT: _half_input,
    Cheat.PARAMETER: _parameter,
    Cheat.TF32: _tf32,
    Cheat.BF16: _bf16,
}
