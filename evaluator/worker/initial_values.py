"""Initial random values of large tensors, made in a fraction of the time.

PyTorch draws random numbers on a CPU one after the other, 4 ns each. A layer of 2 GiB takes three
seconds, in the judge and in each worker, and all of its values are replaced afterwards. While
`repeated_initial_values` lasts, a large tensor is filled with copies of one block of random numbers
instead. The judge and the workers do this alike, so equal constructors still give equal weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LARGE = 2**22
"""Elements from which a tensor is filled with copies."""
_BLOCK = 1_048_573
"""A prime, so that the copies do not line up with rows."""


@contextmanager
def repeated_initial_values() -> Iterator[None]:
    """Replace `Tensor.uniform_` and `Tensor.normal_`, which `torch.nn.init` calls."""
    kind = torch.Tensor
    with (
        replaced_method(kind, "uniform_", _repeating(kind.uniform_)),
        replaced_method(kind, "normal_", _repeating(kind.normal_)),
    ):
        yield


@contextmanager
def replaced_method(owner: type, name: str, method: object) -> Iterator[None]:
    """While this lasts, a class has this method, in place of its own or of one that it inherits."""
    own = vars(owner).get(name)
    setattr(owner, name, method)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _repeating(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def fill(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if tensor.numel() < _LARGE or tensor.device.type != "cpu" or not tensor.is_contiguous():
            return draw(tensor, *args, **kwargs)
        flat = tensor.detach().view(-1)
        draw(flat[:_BLOCK], *args, **kwargs)
        done = _BLOCK
        while done < flat.numel():
            more = min(done, flat.numel() - done)
            flat[done : done + more] = flat[:more]
            done += more
        return tensor

    return fill
