"""A module whose calls go to a judged kernel where that is proven, and to its own forward else."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from agent.deployment.built_kernel import BuiltKernel, aligned, version_of
from agent.deployment.proven_call import IN_MEMORY, ProvenCall, TensorForm
from agent.deployment.standing import ReadyCall, Standing, is_plain, is_transformed, look_of_values
from problems.errors import UsageError

Look = tuple[tuple[type, bool | None], ...]
"""Of each module within one: its class, and its mode where that may matter."""


@dataclass
class Deployment:
    gradient: Literal["original", "raise"]
    kernel: BuiltKernel | None = None
    proven: dict[int, ProvenCall] = field(default_factory=dict)
    """The cases in which the kernel runs."""
    names: tuple[str, ...] = ()
    """Of forward's parameters, those that may be given by position."""
    defaults: tuple[Any, ...] = ()
    weights: dict[tuple[str, ...], TensorForm] = field(default_factory=dict)
    tables: dict[tuple[str, ...], Tensor] = field(default_factory=dict)
    """Buffers that no judge varies: a kernel may rely on their values."""
    devices: tuple[torch.device, ...] = ()
    """Those that have the name of the one that it was timed on."""
    look: Look = ()
    free: frozenset[str] = frozenset()
    """Names of submodules whose mode makes no difference."""
    standing: Standing | None = None

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """All values by position, with the defaults; None where they fit no such call."""
        if not kwargs:
            return args + self.defaults[len(args) :]
        rest = dict(zip(self.names[len(args) :], self.defaults[len(args) :], strict=True))
        return (*args, *(rest | kwargs).values()) if kwargs.keys() <= rest.keys() else None

    def __deepcopy__(self, memo: dict[int, Any]) -> Deployment:
        return replace(self, standing=None)


class LoadedKernel(nn.Module):
    """What `load` gives: of a class that derives from the original's, with its parameters, buffers,
    submodules and hooks, which both share."""

    original: nn.Module
    """Beside the submodules, not among them."""
    cases: dict[str, bool]
    """By name (none where there is only one): whether the kernel runs there."""
    calls: dict[str, int]
    """How many calls ran the kernel, and the original; compiled ones don't count."""
    last_reason: str
    """Why the original ran when it last did."""
    _deployment: Deployment

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        known, traced = self._deployment, torch.compiler.is_compiling()
        values = known.bound(args, kwargs)
        look = look_of_values(values) if values and not traced and is_plain() else None
        standing = known.standing
        ready = standing.ready.get(look) if standing and look else None
        if ready and standing and values and ready.serves(values) and standing.holds(self):
            self.calls["kernel"] += 1
            return ready.run(values)
        route = _route(self, known, values)
        if isinstance(route, str):
            if not traced:
                self.calls["original"] += 1
                self.last_reason = route
            return super().forward(*args, **kwargs)
        assert known.kernel is not None
        case, leaves, weights = route
        call, inputs = known.proven[case], [each for each in leaves if isinstance(each, Tensor)]
        if traced:
            return call.result_of(known.kernel.operator(case, inputs, weights))
        self.calls["kernel"] += 1
        result = call.result_of(known.kernel.run(case, inputs, weights))
        if look and all(aligned(each) is each for each in inputs):
            if not (standing and standing.holds(self)):
                standing = known.standing = Standing.of(self, known.free, [*known.weights])
            if standing:
                device = (*inputs, *weights)[0].device
                module = known.kernel.instance(call, weights, device)
                marks = ((n, weakref.ref(leaves[n]), version_of(leaves[n])) for n in call.constants)
                standing.ready[look] = ReadyCall(call, module, device.index, tuple(marks))
        return result


Route = tuple[int, Sequence[Any], list[Tensor]]


def _route(module: nn.Module, known: Deployment, values: Sequence[Any] | None) -> Route | str:
    """The case, the leaves of the arguments and the weights, or why the original must run."""
    traced = torch.compiler.is_compiling()
    if known.kernel is None:
        return "no case is faster here"
    if not traced and is_transformed():
        return "a mode is on: vmap, forward-mode derivatives, torch.jit or one for all operators"
    if look_of(module, known.free) != known.look:
        return "a submodule was replaced or has a hook, or the mode was not judged"
    if values is None:
        return "it takes no such arguments"
    of_cases = ((case, call.arguments.leaves_of(values)) for case, call in known.proven.items())
    case, leaves = next((found for found in of_cases if found[1] is not None), (-1, None))
    if leaves is None:
        return "no faster case has arguments of these shapes, strides, dtypes and values"
    weights = [_at(module, path) for path in known.weights]
    for (path, form), weight in zip(known.weights.items(), weights, strict=True):
        if not form.fits(weight):
            return f"{'.'.join(path)} has another dtype, shape or layout"
    tensors = [*(each for each in leaves if isinstance(each, Tensor)), *weights]
    if not traced and any(type(each) not in IN_MEMORY for each in tensors):
        return "a tensor is not in memory"
    device = tensors[0].device
    if device not in known.devices or any(each.device != device for each in tensors):
        return "it was not timed on this device, or there are several"
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        if known.gradient == "raise":
            raise UsageError(
                "a gradient is needed, which no kernel gives: call it in torch.no_grad(), or load"
                ' it with gradient="original"'
            )
        return "a gradient is needed"
    if torch.is_autocast_enabled(device.type):
        return "autocast is on"
    constants = known.proven[case].constants
    judged = [(leaves[place], constant, "an argument") for place, constant in constants.items()]
    if not traced:
        judged += [(_at(module, at), table, ".".join(at)) for at, table in known.tables.items()]
    for tensor, constant, name in judged:
        # It can't be told in a trace, nor while a CUDA graph is captured.
        is_hidden = traced or (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
        if is_hidden or not torch.equal(tensor, constant.to(tensor.device)):
            return f"{name} may have other values than those judged"
    return case, leaves, weights


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
