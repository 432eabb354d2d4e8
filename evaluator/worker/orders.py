"""What the judge asks of a zygote and its workers: JSON, because the judge is trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypedDict

if TYPE_CHECKING:
    # Some of these import torch, which a zygote may not before its walls are up.
    from evaluator.baseline import CompileOptions
    from evaluator.worker.stated_gpu import Properties
    from evaluator.worker.steps import Earlier, Result, SourceText, Step

WORKER = "evaluator.worker.worker"


class Layout(TypedDict):
    kind: str
    """`tensor`: other values have other kinds."""
    offset: int
    span: int
    """In bytes, like `offset`."""
    shape: list[int]
    stride: list[int]
    """In elements."""
    dtype: str


@dataclass(frozen=True)
class Order:
    def encode(self) -> bytes:
        return json.dumps(vars(self)).encode()

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        return cls(**json.loads(payload))


@dataclass(frozen=True)
class WarmOrder(Order):
    device: str
    context: bool
    """Make the device's context, too."""


@dataclass(frozen=True)
class LoadOrder(Order):
    source: str
    class_name: str
    threads: int
    dtype: str
    flags: tuple[bool, ...]
    """The fields of `BackendFlags`."""
    text: SourceText
    reference: str | None = None
    """Source of a reference that runs in the same process, in calls that ask for it."""
    gpu: Properties | None = None
    """What to say of a GPU that is not there."""
    device: str = "cpu"
    growth_bytes: int | None = None
    """What the process may still write to beyond what it holds, if that is limited."""


@dataclass(frozen=True)
class ConstructOrder(Order):
    """Construct the module, with memory for weights, inputs and outputs beside the message."""

    seed: int
    arguments: list[Any]
    outputs_bytes: int
    tensors: dict[str, Layout]
    """The weights by name; none: as constructed."""
    outputs: list[tuple[list[int], list[int]]]
    """Shapes and strides of the reference's."""
    inputs_writable: bool = False
    compile_with: CompileOptions | None = None
    repeated_values: bool = True
    """Large tensors get their initial values as `initial_values` makes them."""
    random_constants: bool = False
    """Constant parameters get the values of `random_constants`."""
    earlier: Earlier = ""
    weights_bytes: int = 0
    inputs_bytes: int = 0
    copies_inputs: bool = False
    """The module is called on copies of the inputs, each in a heap block of its own."""


@dataclass(frozen=True)
class CallOrder(Order):
    arguments: list[Any]
    copy: bool
    """On a CPU: copy the outputs into the slot."""
    seed: int | None
    steps: list[Step]
    result: Result
    look: bool
    """Compute with a result that is a subclass of Tensor."""
    held: bool
    """Hold the stream until the judge opens the gate."""
    poison: int | None
    """What unwritten memory of a GPU is to hold."""
    reference: bool
    """Run the reference before the module; its outputs come after the module's."""


@dataclass(frozen=True)
class ForkOrder(Order):
    """Fork a worker. Beside the message: its socket, where it prints, and the bait's folder."""

    scratch: str
    memory_bytes: int | None
    cpu_seconds: int
    confine: bool
    bait: dict[str, Any] | None
    """It is to attack its walls, and to report which of them held."""
    triton: bool
    """Import Triton before."""


@dataclass(frozen=True)
class ReapOrder(Order):
    pid: int
