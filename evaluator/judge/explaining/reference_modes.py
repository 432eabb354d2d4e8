"""The reference run in another way as a whole: in eval(), with a norm in it, in lower precision.

Most wrong kernels that other systems write are right in one of these ways.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_map

from evaluator.backend_flags import BackendFlags
from evaluator.judge.operator_mode import OperatorCall, OperatorMode

Run = Callable[[Callable[..., Any], list[Any]], Tensor]
"""Calls a module and picks one of its outputs."""
Rounding = Callable[[Tensor], Tensor]
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "mv", "dot")
IN_EVAL = "all of it is in eval(): batch norms use their running statistics, nothing is dropped"
_TF32_DROPS = 13
"""Bits of an fp32 mantissa that TF32 leaves out."""


@dataclass(frozen=True)
class Mode:
    words: str
    """`all of it is in eval(): ...`; `fp16`."""
    run: Callable[[], Tensor]


def eval_modes(model: torch.nn.Module, call: Callable[[], Tensor]) -> Iterator[Mode]:
    """The whole model in eval(), then each of its batch norms alone."""
    if not depends_on_mode(model):
        return
    yield Mode(IN_EVAL, partial(_in_eval, list(model.modules()), call))
    norms = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, _NormBase) and module.running_mean is not None
    }
    if len(norms) > 1:
        for name, norm in norms.items():
            words = f"`{name}` uses its running statistics, as in eval()"
            yield Mode(words, partial(_in_eval, [norm], call))


def depends_on_mode(model: torch.nn.Module) -> bool:
    kinds = (_NormBase, torch.nn.modules.dropout._DropoutNd)
    return any(isinstance(module, kinds) for module in model.modules())


def precision_modes(
    model: torch.nn.Module, arguments: list[Any], run: Run, device: torch.device
) -> Iterator[Mode]:
    """fp32 models in lower precision: products or weights alone, by autocast, or all of it."""

    def flagged() -> Tensor:
        with BackendFlags(True, True).added():
            return run(model, arguments)

    def products(rounded: Rounding) -> Tensor:
        with _RoundedProducts(rounded):
            return run(model, arguments)

    def autocast(dtype: torch.dtype) -> Tensor:
        with torch.autocast(device.type, dtype):
            return run(model, arguments).float()

    def weights(dtype: torch.dtype) -> Tensor:
        state = {n: p.to(dtype).to(p.dtype) for n, p in model.named_parameters()}
        return run(lambda *given: functional_call(model, state, given), arguments)

    def whole(dtype: torch.dtype) -> Tensor:
        narrow = copy.deepcopy(model).to(dtype)
        return run(narrow, tree_map(lambda value: _narrowed(value, dtype), arguments)).float()

    if device.type == "cuda":
        yield Mode("TF32", flagged)
    # Operands rounded to fp16 are those rounded to TF32, unless they are very large or small.
    yield Mode("TF32 or fp16", partial(products, to_tf32))
    yield Mode("bf16", partial(products, to_bf16))
    for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        for how in (weights, autocast, whole):
            yield Mode(name, partial(how, dtype))


@contextmanager
def in_eval(modules: Sequence[torch.nn.Module]) -> Iterator[None]:
    """While this lasts, these modules are in eval mode, and none that they contain."""
    before = [module.training for module in modules]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module, training in zip(modules, before, strict=True):
            module.training = training


def _in_eval(modules: Sequence[torch.nn.Module], call: Callable[[], Tensor]) -> Tensor:
    with in_eval(modules):
        return call()


def to_bf16(tensor: Tensor) -> Tensor:
    return tensor.bfloat16().to(tensor.dtype)


def to_tf32(tensor: Tensor) -> Tensor:
    """fp32 rounded to TF32, the nearest and then the even one; others as they are."""
    if tensor.dtype is not torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    half = ((bits >> _TF32_DROPS) & 1) + (1 << (_TF32_DROPS - 1)) - 1
    return ((bits + half) & -(1 << _TF32_DROPS)).view(torch.float32)


def _narrowed(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


class _RoundedProducts(OperatorMode):
    """The operands of products and convolutions are rounded; their sums are not."""

    def __init__(self, rounded: Rounding) -> None:
        super().__init__()
        self._rounded = rounded

    def result_of(self, call: OperatorCall) -> Any:
        if call.plain_name not in _PRODUCTS:
            return call.run()
        # What is added to the product keeps its precision.
        first = 1 if call.plain_name in ("addmm", "baddbmm") else 0
        factors = map(self._factor, call.args[first : first + 2])
        return call.with_args(*call.args[:first], *factors, *call.args[first + 2 :])

    def _factor(self, value: Any) -> Any:
        return self._rounded(value) if isinstance(value, Tensor) else value
