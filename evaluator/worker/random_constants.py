"""Random values for parameters that a constructor sets to the same value each time.

A module can be judged as its constructor leaves it: reference and candidate are constructed from
the same secret seed. But a scale of ones or a bias of zeros follows from no seed, and a kernel that
ignores it would pass. While `random_constants` lasts, such a tensor gets random values instead, in
the judge and in the worker alike: the same for the same seed, shape, value and place among equals.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules import module as registration
from torch.nn.modules.batchnorm import _NormBase

from evaluator.worker.initial_values import replaced_method

STATISTICS = ("running_mean", "running_var")


def around(noise: Tensor, centre: float, *, variance: bool = False) -> Tensor:
    """Turn uniform noise from [0, 1) into values around a constant, in place.

    Variances are spread from a sixteenth to four times the constant: beside a variance of 1 no
    epsilon shows. Positive constants are spread by half of themselves, others by 0.5.
    """
    if variance:
        return noise.mul_(3).sub_(2).mul_(math.log(4.0)).exp_().mul_(centre or 1.0)
    if centre > 0.0:
        return noise.add_(0.5).mul_(centre)
    return noise.add_(centre - 0.5)


@contextmanager
def random_constants(seed: int) -> Iterator[None]:
    """While this lasts, constants that become parameters or running statistics are random.

    New tensors hold NaN until they are filled, so that they do not look like constants.
    """
    constants, parameter = _Constants(seed), torch.nn.Parameter
    new = constants.new_parameter(parameter.__new__)
    statistics = constants.reset_statistics(_NormBase.reset_running_stats)
    mode = torch.get_deterministic_debug_mode()
    hook = registration.register_module_buffer_registration_hook(constants.on_buffer)
    # `use_deterministic_algorithms` does the same and imports the compiler, for a second or more.
    torch.set_deterministic_debug_mode("warn")
    try:
        with (
            replaced_method(parameter, "__new__", staticmethod(new)),
            replaced_method(_NormBase, "reset_running_stats", statistics),
            replaced_method(torch.Tensor, "fill_", constants.filling(torch.Tensor.fill_)),
            replaced_method(torch.Tensor, "zero_", constants.filling(torch.Tensor.zero_)),
        ):
            yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        hook.remove()


class _Constants:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._met: Counter[tuple[Any, ...]] = Counter()
        self._parameters: dict[int, Tensor] = {}
        """By address of their memory; held, so that no other tensor gets the same."""

    def randomise(self, tensor: Tensor, statistic: str = "") -> None:
        value = _constant(tensor)
        if value is None:
            return
        key = (value, tuple(tensor.shape), statistic)
        name = f"{self._seed} {key} {self._met[key]}"
        self._met[key] += 1
        digest = hashlib.sha256(name.encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
        noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float32)
        with torch.no_grad():
            tensor.copy_(around(noise, value, variance=statistic == "running_var"))

    def new_parameter(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def new(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
            made = make(cls, data, requires_grad)
            if made.numel():
                self._parameters[made.untyped_storage().data_ptr()] = made
                self.randomise(made)
            return made

        return new

    def filling(self, fill: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """`fill_` or `zero_`, after which a parameter does not stay constant."""

        def filled(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            result = fill(tensor, *args, **kwargs)
            if tensor.numel() and tensor.untyped_storage().data_ptr() in self._parameters:
                self.randomise(tensor)
            return result

        return filled

    def on_buffer(self, owner: torch.nn.Module, name: str, buffer: Tensor | None) -> None:
        if name in STATISTICS and buffer is not None:
            self.randomise(buffer, name)

    def reset_statistics(self, reset: Callable[[Any], None]) -> Callable[[Any], None]:
        def again(norm: Any) -> None:
            reset(norm)
            for name in STATISTICS:
                self.on_buffer(norm, name, getattr(norm, name, None))

        return again


def _constant(tensor: Tensor) -> float | None:
    """The finite value that a floating tensor holds all over; None where there is none.

    A single number counts if it has three digits at most: others were drawn.
    """
    if not tensor.is_floating_point() or tensor.numel() == 0 or tensor.is_meta:
        return None
    low, high = (float(bound) for bound in tensor.detach().aminmax())
    if low != high or not math.isfinite(low):
        return None
    if tensor.numel() == 1 and float(torch.tensor(float(f"{low:.3g}"), dtype=tensor.dtype)) != low:
        return None
    return low
