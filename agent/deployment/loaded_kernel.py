"""A module whose calls go to a judged kernel where that is proven, and to its own forward else."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.weak import WeakIdKeyDictionary

from agent.deployment.built_kernel import BuiltKernel, version_of
from agent.deployment.proven_call import IN_MEMORY, ProvenCall, TensorForm
from evaluator.evaluation import Verdict
from problems.errors import UsageError

Look = tuple[tuple[type, bool | None], ...]
"""Of each module within one: its class, and its mode where that may matter."""


@dataclass(frozen=True)
class LoadedCase:
    name: str
    """Its sizes; empty where the problem lists no cases."""
    weight: float
    verdict: Verdict | None
    """Against the rival that was named; None where it was not timed."""
    speedup: float | None
    uses_kernel: bool


@dataclass
class Deployment:
    original: nn.Module
    cases: tuple[LoadedCase, ...]
    gradient: Literal["original", "raise"]
    kernel: BuiltKernel | None = None
    proven: dict[int, ProvenCall] = field(default_factory=dict)
    """The cases in which the kernel runs."""
    parameters: tuple[inspect.Parameter, ...] = ()
    """Of forward, those that may be given by position."""
    weights: dict[tuple[str, ...], TensorForm] = field(default_factory=dict)
    tables: dict[tuple[str, ...], Tensor] = field(default_factory=dict)
    """Buffers that no judge varies: a kernel may rely on their values."""
    devices: tuple[torch.device, ...] = ()
    """Those that have the name of the one that it was timed on."""
    look: Look = ()
    free: frozenset[str] = frozenset()
    """Names of submodules whose mode makes no difference."""
    seen: WeakIdKeyDictionary = field(default_factory=WeakIdKeyDictionary)
    """Arguments that have a constant's values: which constant, and their version."""
    calls: dict[str, int] = field(default_factory=lambda: {"kernel": 0, "original": 0})
    last_reason: str = ""

    def __deepcopy__(self, memo: dict[int, Any]) -> Deployment:
        original = copy.deepcopy(self.original, memo)
        return replace(self, original=original, calls=dict(self.calls))


class LoadedKernel(nn.Module):
    """What `load` gives: of a class that derives from the original's, with its parameters, buffers,
    submodules and hooks, which both share."""

    _deployment: Deployment

    @property
    def original(self) -> nn.Module:
        return self._deployment.original

    @property
    def cases(self) -> tuple[LoadedCase, ...]:
        return self._deployment.cases

    @property
    def calls(self) -> dict[str, int]:
        """How many calls ran the kernel, and the original; compiled ones don't count."""
        return self._deployment.calls

    @property
    def last_reason(self) -> str:
        """Why the original ran when it last did."""
        return self._deployment.last_reason

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        known, traced = self._deployment, torch.compiler.is_compiling()
        case, inputs, weights, reason = _route(self, known, args, kwargs)
        if not traced:
            known.calls["original" if reason else "kernel"] += 1
        if reason:
            if not traced:
                known.last_reason = reason
            return super().forward(*args, **kwargs)
        assert known.kernel is not None
        watched = traced or torch._C._len_torch_dispatch_stack() > 0
        if watched or any(type(each) not in IN_MEMORY for each in (*inputs, *weights)):
            outputs = known.kernel.operator(case, inputs, weights)
        else:
            outputs = known.kernel.run(case, inputs, weights)
        return known.proven[case].result_of(outputs)


Route = tuple[int, list[Tensor], list[Tensor], str]


def _route(module: nn.Module, known: Deployment, args: tuple[Any, ...], kwargs: Any) -> Route:
    """The case, inputs and weights, or why the original must run."""
    if known.kernel is None:
        return _original("no case is faster here")
    if not torch.compiler.is_compiling() and _is_transformed():
        return _original("a transform is on: vmap, forward-mode derivatives or torch.jit")
    if look_of(module, known.free) != known.look:
        return _original("a submodule was replaced or has a hook, or the mode was not judged")
    rest = known.parameters[len(args) :]
    if not kwargs.keys() <= {each.name for each in rest}:
        return _original("it takes no such arguments")
    values = [*args, *(kwargs.get(each.name, each.default) for each in rest)]
    case, reason = -1, ""
    for number, call in known.proven.items():
        found = call.arguments.misfit(values)
        if not found:
            case = number
            break
        reason = reason or found
    if case < 0:
        return _original(reason)
    leaves = known.proven[case].arguments.leaves_of(values) or ()
    inputs = [each for each in leaves if isinstance(each, Tensor)]
    weights = [_at(module, path) for path in known.weights]
    for (path, form), weight in zip(known.weights.items(), weights, strict=True):
        if found := form.misfit(weight):
            return _original(f"{'.'.join(path)} is {found}")
    tensors = inputs + weights
    device = tensors[0].device
    if device not in known.devices or any(each.device != device for each in tensors):
        return _original("it was not timed on this device, or there are several")
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        if known.gradient == "raise":
            raise UsageError(
                "a gradient is needed, which no kernel gives: call it in torch.no_grad(), or load"
                ' it with gradient="original"'
            )
        return _original("a gradient is needed")
    if torch.is_autocast_enabled(device.type):
        return _original("autocast is on")
    for place, constant in known.proven[case].constants.items():
        if not _has_values(leaves[place], constant, known.seen):
            return _original("an argument may have other values than those judged")
    for path, table in known.tables.items():
        traced = torch.compiler.is_compiling()
        if not traced and not _has_values(_at(module, path), table, known.seen):
            return _original(f"{'.'.join(path)} was changed")
    return case, inputs, weights, ""


def _original(reason: str) -> Route:
    return -1, [], [], reason


def _is_transformed() -> bool:
    return (
        torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch._C._get_tracing_state() is not None
    )


def _has_values(tensor: Tensor, constant: Tensor, seen: WeakIdKeyDictionary) -> bool:
    """False where that can't be told: in a trace, or while a CUDA graph is captured."""
    if torch.compiler.is_compiling() or type(tensor) not in IN_MEMORY:
        return False
    mark = id(constant), version_of(tensor)
    if seen.get(tensor) == mark:
        return True
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    if not torch.equal(tensor, constant.to(tensor.device)):
        return False
    seen[tensor] = mark
    return True


def _at(module: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        module = getattr(module, name)
    return module


def look_of(module: nn.Module, free: frozenset[str]) -> Look:
    found: list[tuple[type, bool | None]] = []
    for name, each in module.named_modules():
        if name and (each._forward_hooks or each._forward_pre_hooks):
            return ()  # the hooks of the whole are called around forward
        found.append((type(each) if name else nn.Module, None if name in free else each.training))
    return tuple(found)


def may_read_mode(module: nn.Module) -> bool:
    """Whether its result may depend on `training`, as far as the code of its classes tells."""
    if isinstance(module, nn.modules.dropout._DropoutNd) and module.p == 0.0:
        return False
    kinds = [kind for kind in type(module).__mro__ if kind not in (nn.Module, object)]
    parts = [part for kind in kinds for part in vars(kind).values()]
    return any(_names_mode(part.__code__) for part in parts if isinstance(part, FunctionType))


def _names_mode(code: CodeType) -> bool:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return "training" in code.co_names or any(map(_names_mode, inner))
