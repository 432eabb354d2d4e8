"""A mode in which each of PyTorch's operators is seen as it runs."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """Base of the modes that count, look at or change operators while they are entered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and asking to be skipped imports the compiler (1.6 s)."""
        return False

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the operator, called so, gives in this mode."""
        return func(*args, **kwargs)


def operator_name(func: OpOverload) -> str:
    """`mm`, `relu_`."""
    return str(func._schema.name).removeprefix("aten::")


def storage_of(tensor: Tensor) -> int:
    """Which memory a tensor is a view of, as long as that lives."""
    return int(tensor.untyped_storage()._cdata)
