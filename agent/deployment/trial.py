"""The loaded form of a kernel against a copy of the module that it is to stand for.

Both run on drawn inputs, with the module's weights and with others. So what gives results is what
was judged, a module that has changed since is noticed, and so is a kernel that keeps more between
calls than its audit could see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from agent.deployment.built_kernel import BuiltKernel
from agent.deployment.proven_call import ProvenCall, TensorForm
from agent.recording.difference import difference
from agent.recording.recorded_calls import draws_kept
from evaluator.judge.blockwise import same
from evaluator.worker.random_constants import STATISTICS
from evaluator.worker.values import flatten
from problems.errors import first_line

_FACTORS = (1.0, 1.0, 1.25)
"""For the weights, in each call. The second one may overwrite the first one's result."""


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def tables_of(module: nn.Module) -> dict[str, Tensor]:
    """Buffers that the judge leaves as they are: masks, positions."""
    others = (*STATISTICS, "num_batches_tracked")
    return {n: each for n, each in module.named_buffers() if n.rpartition(".")[2] not in others}


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
    tables = tables_of(twin)
    varied = [t for name, t in weights.items() if t.is_floating_point() and name not in tables]
    kept: list[Tensor] = []
    copies: list[Tensor] = []
    for seed, factor in enumerate(_FACTORS[:1] if again else _FACTORS):
        for tensor in varied if factor != 1.0 else ():
            tensor.mul_(factor)
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
        if list(map(TensorForm.of, made)) != list(map(TensorForm.of, wanted)):
            return "its results have another number, shape, layout or dtype"
        off, allowed = difference(wanted, made)
        if not off <= allowed:
            return f"kernel and module differ (off by {off:.2g}): was the module changed since?"
        if _overlap(made, everything) or not all(map(same, kept, copies)):
            return "its result lies in an input, or the next call overwrites it"
        kept, copies = made, [each.clone() for each in made]
    return ""


def _overlap(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    places = {each.untyped_storage().data_ptr() for each in others}
    return any(each.untyped_storage().data_ptr() in places for each in some)


def _tensors_in(value: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
