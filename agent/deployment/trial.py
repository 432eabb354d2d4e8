"""The loaded form of a kernel against a copy of the module that it is to stand for.

Both run on drawn inputs, with the module's weights, with others and with the first again. So what
gives results is what was judged, a module that has changed since is noticed, and so is a kernel
that keeps more between calls than its audit could see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from agent.deployment.built_kernel import BuiltKernel, first_line
from agent.deployment.proven_call import ProvenCall, TensorForm
from agent.recording.difference import distance
from agent.recording.recorded_calls import draws_kept
from evaluator.judge.blockwise import same
from evaluator.worker.random_constants import STATISTICS
from evaluator.worker.values import flatten

_OTHER_WEIGHTS = 1.25
"""Times the module's."""


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def tables_of(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Buffers that the judge leaves as they are: masks, positions."""
    for name, tensor in module.named_buffers():
        if name.rpartition(".")[2] not in (*STATISTICS, "num_batches_tracked"):
            yield name, tensor


@torch.no_grad()
def try_out(
    kernel: BuiltKernel,
    case: int,
    call: ProvenCall,
    twin: nn.Module,
    names: Sequence[str],
    inputs: Callable[[], list[Any]],
    *,
    again: bool,
) -> str:
    """How kernel and module differ; empty where they don't. `twin` gets other weights.

    `again`: the kernel was tried with another module of this kind, and one call is enough.
    """
    weights = tensors_of(twin)
    states: list[dict[str, Tensor]] = [{}]
    if not again:
        own = {name: tensor.clone() for name, tensor in weights.items()}
        varied = {name for name, tensor in own.items() if tensor.is_floating_point()}
        varied -= {name for name, _ in tables_of(twin)}
        others = {n: t * _OTHER_WEIGHTS if n in varied else t for n, t in own.items()}
        # The last call follows one with the same weights, whose result it may overwrite.
        states = [own, others, own, own]
    before: dict[str, Tensor] = {}
    kept: list[Tensor] = []
    copies: list[Tensor] = []
    for seed, state in enumerate(states):
        for name, tensor in state.items() if state is not before else ():
            weights[name].copy_(tensor)
        before = state
        with draws_kept():
            torch.manual_seed(seed)
            drawn = iter(_tensors_in(inputs()))
            given = call.arguments.with_tensors(lambda _, drawn=drawn: next(drawn))  # type: ignore[misc]
            everything = [*_tensors_in(given), *weights.values()]
            versions = [each._version for each in everything]
            torch.manual_seed(seed)
            wanted = flatten(twin.forward(*given), trusted=True)
            if [each._version for each in everything] != versions:
                return "its module changes its inputs or buffers"
            if _overlap(wanted, everything):
                return "its module returns an input or a part of one"
            torch.manual_seed(seed)
            try:
                made = kernel.run(case, _tensors_in(given), [weights[name] for name in names])
            except Exception as error:  # noqa: BLE001 - a kernel may raise anything
                return f"{type(error).__name__}: {first_line(error)}"
        if found := _difference(made, wanted):
            return f"kernel and module differ ({found}): was the module changed since?"
        if _overlap(made, everything) or not all(map(same, kept, copies)):
            return "its result lies in an input, or the next call overwrites it"
        kept, copies = made, [each.clone() for each in made]
    return ""


def _overlap(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    places = {each.untyped_storage().data_ptr() for each in others}
    return any(each.untyped_storage().data_ptr() in places for each in some)


def _tensors_in(value: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _difference(some: Sequence[Tensor], others: Sequence[Tensor]) -> str:
    if [TensorForm.of(each) for each in some] != [TensorForm.of(each) for each in others]:
        return "results of another number, shape, layout or dtype"
    for one, other in zip(some, others, strict=True):
        off, allowed = distance(one, other)
        if not off <= allowed:
            return f"off by {off:.2g} of the result's size"
    return ""
