"""The reference run in another way as a whole: in eval(), with a norm in it, in lower precision.

Most wrong kernels that other systems write are right in one of these ways.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_map

from evaluator.backend_flags import BackendFlags
from evaluator.judge.bounds.work_rules import TRANSCENDENTAL
from evaluator.judge.operator_mode import OperatorCall, OperatorMode, storage_of, tensors_in

Run = Callable[[Callable[..., Any], list[Any]], Tensor]
"""Calls a module and picks one of its outputs."""
Rounding = Callable[[Tensor], Tensor]
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "mv", "dot")
IN_EVAL = "all of it is in eval(): batch norms use their running statistics, nothing is dropped"
FAST_MATHS = "functions as fast maths has them"
FUNCTIONS = TRANSCENDENTAL | {"xlogy"}
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
    """fp32 models in lower precision: weights, products or all results are rounded, or off.

    The arithmetic stays in fp32, so that no operator takes far longer, or asserts more.
    """

    def within(
        mode: AbstractContextManager[object],
        rounded: Rounding | None = None,
        given: list[Any] = arguments,
    ) -> Tensor:
        state = {}
        if rounded is not None:
            state = {name: _rounded(weight, rounded) for name, weight in model.named_parameters()}

        def module(*values: Any) -> Any:
            with mode:
                return functional_call(model, state, values)

        return run(module, given)

    def products(rounded: Rounding, *, results: bool) -> Tensor:
        return within(_Rounded(rounded, results=results))

    def weights(rounded: Rounding) -> Tensor:
        return within(nullcontext(), rounded)

    def whole(rounded: Rounding) -> Tensor:
        given = tree_map(lambda value: _rounded(value, rounded), arguments)
        return within(_Rounded(rounded, results=True, everywhere=True), rounded, given)

    if device.type == "cuda":
        yield Mode("TF32", lambda: within(BackendFlags(True, True).added()))
    # Operands rounded to fp16 are those rounded to TF32, unless they are very large or small.
    yield Mode("TF32 or fp16", partial(products, to_tf32, results=False))
    yield Mode("bf16", partial(products, _to_bf16, results=False))
    for name, rounded in (("fp16", _to_fp16), ("bf16", _to_bf16)):
        # The second is what autocast does.
        for how in (weights, partial(products, results=True), whole):
            yield Mode(name, partial(how, rounded))
    for seed in range(4):
        yield Mode(FAST_MATHS, partial(within, _FunctionsOff(random.Random(seed))))


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


def _to_fp16(tensor: Tensor) -> Tensor:
    return tensor.half().to(tensor.dtype)


def _to_bf16(tensor: Tensor) -> Tensor:
    return tensor.bfloat16().to(tensor.dtype)


def to_tf32(tensor: Tensor) -> Tensor:
    """fp32 rounded to TF32, the nearest and then the even one; others as they are."""
    if tensor.dtype is not torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    half = ((bits >> _TF32_DROPS) & 1) + (1 << (_TF32_DROPS - 1)) - 1
    return ((bits + half) & -(1 << _TF32_DROPS)).view(torch.float32)


def _rounded(value: Any, rounded: Rounding) -> Any:
    is_rounded = isinstance(value, Tensor) and value.dtype is torch.float32
    return rounded(value) if is_rounded else value


class _FunctionsOff(OperatorMode):
    def __init__(self, signs: random.Random) -> None:
        super().__init__()
        self._signs = signs

    def result_of(self, call: OperatorCall) -> Any:
        result = call.run()
        if call.plain_name.rstrip("_") in FUNCTIONS:
            for tensor in filter(torch.is_floating_point, tensors_in(result)):
                tensor.mul_(1 + self._signs.choice((-1, 1)) * 2.0**-21)
        return result


class _Rounded(OperatorMode):
    """The operands of products and convolutions are rounded, and so may be what comes out: of these
    alone, or of all operators."""

    def __init__(self, rounding: Rounding, *, results: bool, everywhere: bool = False) -> None:
        super().__init__()
        self._rounding = rounding
        self._results = results
        self._everywhere = everywhere

    def result_of(self, call: OperatorCall) -> Any:
        is_product = call.plain_name in _PRODUCTS
        if not is_product:
            result = call.run()
        else:
            # What is added to the product keeps its precision.
            first = 1 if call.plain_name in ("addmm", "baddbmm") else 0
            factors = (_rounded(each, self._rounding) for each in call.args[first : first + 2])
            args = (*call.args[:first], *factors, *call.args[first + 2 :])
            result = call.func(*args, **call.kwargs)
        if self._results and (is_product or self._everywhere):
            given = {storage_of(tensor) for tensor in call.operands}
            for tensor in tensors_in(result):
                if storage_of(tensor) not in given:
                    tensor.copy_(_rounded(tensor, self._rounding))
        return result
