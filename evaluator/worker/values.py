"""Arguments as the judge sends them: tensors by layout in shared memory, the rest as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch

from evaluator.worker.memory import tensor_at

if TYPE_CHECKING:
    from evaluator.worker.orders import Layout


class TensorSubclassError(TypeError):
    """An output is no plain tensor."""


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def decode(value: Any, memory: torch.Tensor, adopt: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A Python value from its JSON form; each tensor passes through `adopt`."""
    if not isinstance(value, dict):
        return value
    match value["kind"]:
        case "tensor":
            return adopt(tensor_at(memory, cast("Layout", value)))
        case "list":
            return [decode(item, memory, adopt) for item in value["items"]]
        case "tuple":
            return tuple(decode(item, memory, adopt) for item in value["items"])
        case "dict":
            return {key: decode(item, memory, adopt) for key, item in value["items"]}
        case "dtype":
            return getattr(torch, value["name"])
        case "device":
            return torch.device(value["name"])
        case "size":
            return torch.Size(value["items"])
        case "float":
            return float(value["text"])
    raise ValueError(f"unknown kind of value {value['kind']!r}")


def flatten(value: Any, *, look: bool = False, trusted: bool = False) -> list[torch.Tensor]:
    """The tensors of a forward's result, in order; a Python number becomes a 0-dim tensor.

    Those of a dict come in the order of its keys; None among others is nothing. `look`: a subclass
    of Tensor is looked at, by adding zero, as a caller would who goes on computing with it.
    `trusted`: it is as good as any.

    Raises `TensorSubclassError` and, for anything else, `TypeError`.
    """
    if type(value) in (torch.Tensor, torch.nn.Parameter) or (
        trusted and isinstance(value, torch.Tensor)
    ):
        # Behind a conjugate or negative bit, memory holds other values than the tensor has.
        return [value.detach().resolve_conj().resolve_neg()]
    if isinstance(value, torch.Tensor):
        if look and type(seen := value + 0) is torch.Tensor:
            return [seen.detach()]
        raise TensorSubclassError(type(value).__name__)
    if isinstance(value, tuple | list):
        given = [item for item in value if item is not None]
        return [t for item in given for t in flatten(item, look=look, trusted=trusted)]
    if isinstance(value, dict):
        # Dicts are equal whatever the order in which their keys were set.
        ordered = [value[key] for key in sorted(value, key=str)]
        return flatten(ordered, look=look, trusted=trusted)
    if isinstance(value, bool | int | float):
        return [torch.tensor(value)]
    raise TypeError(f"forward returned a {type(value).__name__}; tensors were expected")
