"""A mode in which each of PyTorch's operators is seen as it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class OperatorCall:
    func: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """`mm`, `relu_`, `_softmax`."""
        return str(self.func._schema.name).removeprefix("aten::")

    @property
    def plain_name(self) -> str:
        """`mm`, `relu`, `softmax`."""
        return self.name.strip("_")

    @property
    def operands(self) -> list[Tensor]:
        return tensors_in((self.args, self.kwargs))

    def run(self) -> Any:
        return self.func(*self.args, **self.kwargs)


class OperatorMode(TorchDispatchMode):
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
        return self.result_of(OperatorCall(func, args, kwargs or {}))

    def result_of(self, call: OperatorCall) -> Any:
        return call.run()


def tensors_in(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def storage_of(tensor: Tensor) -> int:
    """Which memory a tensor is a view of, as long as that lives."""
    return int(tensor.untyped_storage()._cdata)
