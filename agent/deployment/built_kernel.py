"""A judged kernel in this process, built as the judge built it."""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook
from torch.utils import cpp_extension
from torch.utils.weak import WeakIdKeyDictionary

from agent.deployment.proven_call import ProvenCall
from agent.record.proof import Proof
from agent.recording.recorded_calls import draws_kept
from evaluator.audit_record import Life
from evaluator.builder.builder import Builder
from evaluator.errors import InfrastructureError
from evaluator.hardware.devices import describe
from evaluator.judge.problem.reference import DTYPES, WEIGHT_SEED
from evaluator.worker import build_stub
from evaluator.worker.initial_values import repeated_initial_values
from evaluator.worker.values import flatten
from evaluator.worker.weights import with_weights
from problems.cache_folder import cache_folder
from problems.errors import UsageError, first_line

ALIGNMENT_BYTES = 64
"""Tensors that kernels were judged with begin at least so."""
_NUMBERS = count()


class BuiltKernel:
    """`run` depends on its arguments alone: an instance serves until its weights change.

    `operator` is the same for all that traces calls: `torch.compile`, `torch.export`, modes.
    """

    def __init__(
        self,
        proof: Proof,
        file: types.ModuleType,
        names: Sequence[str],
        calls: Mapping[int, ProvenCall],
    ) -> None:
        """`names`: those of the weights, as they are given; `calls`: by number of the case."""
        self._proof = proof
        self._file = file
        self._names = names
        self._calls = calls
        self._instances = WeakIdKeyDictionary()
        self.tried: set[str] = set()
        """By how it was constructed."""
        self.operator = torch.library.custom_op(
            f"kernel_refinery::k_{proof.candidate}_{next(_NUMBERS)}",
            self.run,
            mutates_args=(),
            schema="(int case, Tensor[] inputs, Tensor[] weights) -> Tensor[]",
            # A replayed CUDA graph would not notice changed weights.
            tags=(torch.Tag.cudagraph_unsafe,) if names else (),
        )
        self.operator.register_fake(self._fake)
        _number_fused_steps()

    def run(self, case: int, inputs: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        """Its outputs, laid out as the original's."""
        call, device = self._calls[case], (*inputs, *weights)[0].device
        with torch.no_grad(), on_device(device):
            module = self.instance(call, weights, device)
            placed = map(aligned, inputs)
            given = call.arguments.with_tensors(lambda _: next(placed))[: call.given]
            return call.laid_out(flatten(module(*given)))

    def _fake(self, case: int, inputs: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        device = (*inputs, *weights)[0].device
        return [form.empty(device) for form in self._calls[case].outputs]

    def instance(
        self, call: ProvenCall, weights: Sequence[Tensor], device: torch.device
    ) -> nn.Module:
        kept = self._instances.setdefault(weights[0] if weights else self, {})
        kind = call.construction, device
        key = [(each.data_ptr(), version_of(each)) for each in weights]
        if kind not in kept or kept[kind][0] != key:
            module = self._constructed(call.initial_arguments, weights, device)
            # While the weights are kept, their addresses name nothing else.
            kept[kind] = key, module, [each.detach() for each in weights]
        found: nn.Module = kept[kind][1]
        return found

    def _constructed(
        self, arguments: list[Any], weights: Sequence[Tensor], device: torch.device
    ) -> nn.Module:
        given = dict(zip(self._names, weights, strict=True))
        numbers = {
            name: each.detach().cpu()
            for name, each in given.items()
            if each.is_floating_point() or each.is_complex()
        }

        def build() -> nn.Module:
            torch.default_generator.manual_seed(WEIGHT_SEED)
            with repeated_initial_values():
                made: nn.Module = self._file.ModelNew(*copy.deepcopy(arguments))
                return made

        with as_the_judge_constructs():
            loaded = with_weights(build, self._file.ModelNew, numbers)
        if loaded.fit != (judged := self._proof.evaluation.weights):
            raise UsageError(f"it takes weights otherwise than as judged: {loaded.fit}, {judged}")
        module = loaded.module.to(device)
        if (dtype := DTYPES[self._proof.settings.precision]) is not torch.float32:
            module = module.to(dtype)
        module.requires_grad_(False)
        own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        floating = [n for n, each in own.items() if each.is_floating_point() or each.is_complex()]
        renamed = dict(zip(floating, numbers, strict=True)) if loaded.fit == "ordered" else {}
        # One that may be moved keeps no addresses, and can do with the given weights' memory.
        may_share = self._proof.outcome(Life.MOVED).startswith("holds")
        for name, tensor in own.items():
            weight = given.get(renamed.get(name, name))
            if weight is None:
                continue
            if name not in floating:
                tensor.copy_(weight)  # a table of integers, say
            is_alike = tensor.dtype == weight.dtype and tensor.stride() == weight.stride()
            if may_share and is_alike and torch.equal(tensor, weight):  # not derived
                tensor.data = weight.detach()
        return module


_BUILT: dict[str, BuiltKernel] = {}


def built_kernel(
    proof: Proof, file: types.ModuleType, names: Sequence[str], calls: Mapping[int, ProvenCall]
) -> BuiltKernel:
    """One for all layers of a kind, which are then compiled once."""
    key = repr((proof, file, names, calls))
    if key not in _BUILT:
        _BUILT[key] = BuiltKernel(proof, file, names, calls)
    return _BUILT[key]


def imported(candidate: str, source: str, path: Path, device: str) -> types.ModuleType:
    """The kernel's file, run once in a process, with `load_inline` and `load` as in a worker."""
    name = f"kernel_refinery_{candidate}"
    if name in sys.modules:
        return sys.modules[name]
    file = sys.modules[name] = types.ModuleType(name)
    file.__file__ = str(path)
    builder = Builder(cache_folder(), cuda_arch=describe(device).cuda_architecture)
    before = cpp_extension.load_inline, cpp_extension.load
    build_stub.install(builder.build)
    try:
        with as_the_judge_constructs():
            exec(compile(source, str(path), "exec"), vars(file))
    except (InfrastructureError, RuntimeError, ImportError, OSError) as error:
        del sys.modules[name]
        raise UsageError(f"{path} can't be built or imported: {first_line(error)}") from error
    finally:
        cpp_extension.load_inline, cpp_extension.load = before
    return file


@contextmanager
def as_the_judge_constructs() -> Iterator[None]:
    """On the CPU in fp32, whatever is usual here."""
    place, dtype = torch.device("cpu"), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with draws_kept(), torch.inference_mode(False), torch.no_grad(), place:
            yield
    finally:
        torch.set_default_dtype(dtype)


@cache
def _number_fused_steps() -> None:
    """Fused optimisers leave a tensor's version as it is: from now on their steps count."""

    def number(optimizer: Optimizer, *_: object) -> None:
        for group in optimizer.param_groups:
            if group.get("fused"):
                for parameter in group["params"]:
                    torch.autograd.graph.increment_version(parameter)

    register_optimizer_step_post_hook(number)


def on_device(device: torch.device) -> AbstractContextManager[None]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def version_of(tensor: Tensor) -> object:
    # A tensor of inference mode has none: it is taken for changed.
    return object() if tensor.is_inference() else tensor._version


def aligned(tensor: Tensor) -> Tensor:
    """Itself where memory holds what it shows, and begins as the judge's does."""
    plain = tensor.resolve_conj().resolve_neg()
    return plain if plain.data_ptr() % ALIGNMENT_BYTES == 0 else plain.clone()
