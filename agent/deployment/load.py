"""`load`: a run's kernel as a module to use, with the original for all that was not proven."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from agent.deployment.built_kernel import (
    as_the_judge_constructs,
    built_kernel,
    first_line,
    imported,
    on_device,
)
from agent.deployment.loaded_kernel import (
    Deployment,
    LoadedCase,
    LoadedKernel,
    look_of,
    may_read_mode,
)
from agent.deployment.proven_call import TensorForm, proven_call
from agent.deployment.trial import tables_of, tensors_of, try_out
from agent.deployment.unsafe_code import unsafe_code
from agent.optimize import Result
from agent.record.proof import Proof
from agent.recording.recorded_calls import draws_kept
from evaluator.audit_record import Life
from evaluator.errors import UnusableReferenceError
from evaluator.evaluation import BaselineTiming, Candidate, CaseTiming, Timing, Verdict
from evaluator.hardware.devices import describe
from evaluator.judge.blockwise import same
from evaluator.judge.problem.reference import Reference
from evaluator.settings import BaselineName, Precision
from problems.errors import UsageError
from problems.source_file import read_source

_DRAWS = 3
_TAKEN = ("original", "cases", "calls", "last_reason")


def load(
    kernel: Path | str | Result,
    module: nn.Module | None = None,
    *,
    against: Literal["eager", "compile", "max_autotune"] = "eager",
    gradient: Literal["original", "raise"] = "original",
    allow_unsafe: bool = False,
) -> LoadedKernel:
    """A module that does what `module` does, with a kernel wherever that is proven to be faster.

    `kernel`: `best/PROBLEM.py`, the folder of a run of one problem, or what `optimize` returned.
    `module`: what it replaces, whose weights it shares; None: the problem's `Model`, with the
    weights of the module that the problem was made of.

    The kernel runs in the cases in which its second verdict is `faster` than `against`, on the
    device of that verdict, where no gradient is needed. For all else the original runs; with
    `gradient="raise"` a call that needs a gradient raises. The kernel is a model's code and has no
    walls from here on: a source that starts processes, opens files or sockets is refused unless
    `allow_unsafe`. Raises `UsageError` for what can't be loaded.
    """
    path, source, proof = judged(kernel, allow_unsafe=allow_unsafe)
    figures = [_figure(timed, against, path) for timed in proof.timed]
    original = _problem_model(proof) if module is None else module
    _check(original)
    cases = _cases(proof)
    misfits = [case.misfit(original) for case in cases]
    fitting = [number for number, misfit in enumerate(misfits) if not misfit]
    if not fitting:
        raise UsageError(
            f"{path} was judged for another module than this {type(original).__name__}, which has"
            f" {misfits[0]}"
        )
    devices = _devices_named(proof)
    used = {
        number: cases[number]
        for number in fitting
        if devices and (figure := figures[number]) and figure.verdict is Verdict.FASTER
    }
    known = Deployment(
        original,
        tuple(
            LoadedCase(
                timed.name,
                timed.weight,
                figure.verdict if figure else None,
                figure.speedup if figure else None,
                uses_kernel=False,
            )
            for timed, figure in zip(proof.timed, figures, strict=True)
        ),
        gradient,
        devices=devices,
    )
    if used:
        known = _with_kernel(known, path, source, proof, used)
    original_class: Any = type(original)
    loaded_class = _loaded_class(original_class)
    loaded = loaded_class.__new__(loaded_class)
    vars(loaded).update(vars(original), _deployment=known, _compiled_call_impl=None)
    return loaded


def judged(kernel: Path | str | Result, *, allow_unsafe: bool) -> tuple[Path, str, Proof]:
    """The file, its text and its verdict; raises `UsageError` for what no module could use here."""
    path = _path_of(kernel)
    source = read_source(path)
    proof = _proof_of(path, source)
    if not allow_unsafe and (found := unsafe_code(source)):
        raise UsageError(f"{path}: {found}; read it, and if you trust it give allow_unsafe=True")
    if proof.on_gpu and not torch.cuda.is_available():
        raise UsageError(f"{path} is for {proof.evaluation.device}, and this machine has no GPU")
    return path, source, proof


def _path_of(kernel: Path | str | Result) -> Path:
    if isinstance(kernel, Result):
        if kernel.best_path is None:
            raise UsageError(f"{kernel.run} found no correct kernel: there is nothing to load")
        return kernel.best_path.resolve()
    path = Path(kernel).expanduser().resolve()
    if not path.is_dir():
        return path
    found = sorted((path / "best").glob("*.py"))
    if len(found) != 1:
        raise UsageError(f"{path} holds {len(found)} best kernels: name one, best/PROBLEM.py")
    return found[0]


def _proof_of(path: Path, source: str) -> Proof:
    beside = path.with_suffix(".json")
    try:
        proof = Proof.model_validate_json(beside.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{path} has no second verdict beside it ({beside.name}): name the file in best/ of a"
            " run that has ended, made without --confirm 0"
        ) from None
    except (OSError, ValidationError) as error:
        raise UsageError(f"{beside} can't be read: {first_line(error)}") from None
    if Candidate(source=source, backend=proof.backend).hash != proof.candidate:
        raise UsageError(f"{path} was changed since its verdict: repeat its run's command")
    for life in (Life.RESULT_KEPT, Life.INSTANCES):
        outcome, _, why = proof.outcome(life).partition(" ")
        if outcome == "broken":
            raise UsageError(f"{path} is right for one call at a time only: {why}")
    return proof


@dataclass(frozen=True)
class _Case:
    """What a case's reference says."""

    inputs: Callable[[], list[Any]]
    initial_arguments: list[Any]
    given: list[Any]
    """What `get_inputs()` gives, but for memory."""
    weights: dict[str, tuple[torch.Size, torch.dtype]]
    modes: dict[str, bool]
    numbers: dict[str, dict[str, float]]
    """Attributes of the module's parts: what they change may be too small for a trial."""

    @cached_property
    def constants(self) -> dict[int, Tensor]:
        """Of the leaves of `inputs()`, those tensors that are the same in every draw."""
        found: dict[int, Tensor] = {}
        with draws_kept():
            for seed in range(_DRAWS):
                torch.manual_seed(seed)
                leaves = dict(enumerate(tree_leaves(self.inputs())))
                kept = found if seed else leaves
                found = {
                    place: leaf
                    for place, leaf in leaves.items()
                    if isinstance(leaf, Tensor) and place in kept and same(leaf, kept[place])
                }
        return found

    def misfit(self, module: nn.Module) -> str:
        shapes = {name: shape for name, (shape, _) in self.weights.items()}
        if {name: each.shape for name, each in tensors_of(module).items()} != shapes:
            return "weights of other names or shapes"
        for name, part in module.named_modules():
            for key, value in self.numbers.get(name, {}).items():
                if getattr(part, key, value) != value:
                    return "another " + f"{name}.{key}".removeprefix(".")
        return ""

    def twin(self, module: nn.Module, device: torch.device) -> nn.Module:
        """A copy with the dtypes and modes of the problem's module."""
        twin = copy.deepcopy(module).requires_grad_(False)
        for name, tensor in tensors_of(twin).items():
            tensor.data = tensor.to(device, self.weights[name][1])
        for name, each in twin.named_modules():
            each.training = self.modes.get(name, self.modes[""])
        return twin


@cache
def _case(reference: str, precision: Precision, device: str) -> _Case:
    with as_the_judge_constructs():
        judged = Reference(reference, torch.device("cpu"), precision)
        try:
            with FakeTensorMode():
                given = judged.problem.inputs(torch.device(device), judged.dtype)
        except UnusableReferenceError:  # what it draws may depend on values
            given = judged.problem.inputs(torch.device(device), judged.dtype)
    inputs = partial(judged.problem.inputs, torch.device(device), judged.dtype)
    weights = {name: (each.shape, each.dtype) for name, each in tensors_of(judged.model).items()}
    modes = {name: each.training for name, each in judged.model.named_modules()}
    numbers = {
        name: {key: value for key, value in vars(part).items() if isinstance(value, float)}
        for name, part in judged.model.named_modules()
    }
    return _Case(inputs, judged.initial_arguments, given, weights, modes, numbers)


def _cases(proof: Proof) -> list[_Case]:
    kind = "cuda" if proof.on_gpu else "cpu"
    return [_case(each.reference, proof.settings.precision, kind) for each in proof.cases]


def may_fit(proof: Proof, module: nn.Module) -> bool:
    """Whether `load` would try the kernel for it, and its parts have the judged names."""
    names = [name for name, _ in module.named_modules()]
    return any([*case.modes] == names and not case.misfit(module) for case in _cases(proof))


def _problem_model(proof: Proof) -> nn.Module:
    device = torch.device("cuda" if proof.on_gpu else "cpu")
    with as_the_judge_constructs():
        model = Reference(proof.cases[0].reference, device, proof.settings.precision).model
    if proof.weights is not None:
        if not proof.weights.exists():
            raise UsageError(f"the weights {proof.weights} are gone: give load() the module")
        model.load_state_dict(load_file(proof.weights))
    return model


def _figure(timed: CaseTiming, against: str, path: Path) -> Timing | BaselineTiming | None:
    """None where a case was not timed."""
    if timed.timing is None or against == "eager":
        return timed.timing
    found = timed.timing.baselines.get(BaselineName(against))
    if found is None:
        raise UsageError(
            f"the verdict on {path} has no figure against {against}: make a run with --baseline"
            f" {against}"
        )
    return found


def _check(module: nn.Module) -> None:
    kind = type(module).__name__
    if isinstance(module, LoadedKernel):
        raise UsageError(f"this {kind} has a kernel already: give its .original")
    if taken := [name for name in _TAKEN if hasattr(module, name)]:
        raise UsageError(f"{kind} has an attribute {taken[0]}, which load() needs: rename it")
    if "forward" in vars(module) or not look_of(module, frozenset()):
        raise UsageError(f"this {kind} has hooks in it, or another forward: remove them")
    if any(tensor.is_meta for tensor in tensors_of(module).values()):
        raise UsageError(f"this {kind} lies on meta: load its weights first")


def _devices_named(proof: Proof) -> tuple[torch.device, ...]:
    """Those of this machine that have the name of the one of the verdict."""
    name = proof.evaluation.device
    if not proof.on_gpu:
        return (torch.device("cpu"),) if describe("cpu").name == name else ()
    every = range(torch.cuda.device_count())
    return tuple(torch.device("cuda", n) for n in every if torch.cuda.get_device_name(n) == name)


def _with_kernel(
    known: Deployment, path: Path, source: str, proof: Proof, used: dict[int, _Case]
) -> Deployment:
    own = tensors_of(known.original)
    here = next((each.device for each in own.values()), known.devices[0])
    device = here if here in known.devices else known.devices[0]
    first = used[min(used)]
    twin = first.twin(known.original, device)
    names = [name for name in first.weights if not name.endswith("num_batches_tracked")]
    parameters = tuple(
        each
        for each in inspect.signature(twin.forward).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    )
    defaults = [each.default for each in parameters]
    proven = {
        number: proven_call(
            twin, case.initial_arguments, case.given, defaults, case.constants, device
        )
        for number, case in used.items()
    }
    file = imported(proof.candidate, source, path, str(device))
    kernel = built_kernel(proof, file, names, proven)
    # Cases that are constructed alike are one module: the smallest is tried.
    faults: dict[str, str] = {}
    for number, call in sorted(proven.items(), key=lambda item: item[1].arguments.size_bytes):
        if call.construction not in faults:
            inputs, again = used[number].inputs, call.construction in kernel.tried
            with on_device(device):
                fault = try_out(kernel, number, call, twin, names, inputs, again=again)
            faults[call.construction] = fault
            if not fault:
                kernel.tried.add(call.construction)
    right = {n: call for n, call in proven.items() if not faults[call.construction]}
    if not right:
        raise UsageError(f"{path} can't be used: {next(iter(faults.values()))}")
    free = frozenset(name for name, each in twin.named_modules() if not may_read_mode(each))
    if any(".training" in proof.cases[number].reference for number in right):
        free -= {""}
    forms = {name: TensorForm.of(tensor) for name, tensor in tensors_of(twin).items()}
    return replace(
        known,
        cases=tuple(replace(c, uses_kernel=n in right) for n, c in enumerate(known.cases)),
        kernel=kernel,
        proven=right,
        parameters=parameters,
        weights={tuple(name.split(".")): forms[name] for name in names},
        tables={tuple(name.split(".")): tensor for name, tensor in tables_of(twin)},
        look=look_of(twin, free),
        free=free,
    )


@cache
def _loaded_class(kind: Any) -> type[LoadedKernel]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return LoadedKernel.forward(self, *args, **kwargs)

    forward.__signature__ = inspect.signature(kind.forward)  # type: ignore[attr-defined]
    body = {"__module__": kind.__module__, "forward": forward}
    return type(f"Loaded{kind.__name__}", (LoadedKernel, kind), body)
