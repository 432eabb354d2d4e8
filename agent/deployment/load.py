"""`load`: a run's kernel as a module to use, with the original for all that was not proven."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Literal

import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from torch import nn

from agent.deployment.built_kernel import as_the_judge_constructs, built_kernel, imported, on_device
from agent.deployment.loaded_kernel import Deployment, LoadedKernel, look_of, may_read_mode
from agent.deployment.proven_call import TensorForm, proven_call
from agent.deployment.trial import tables_of, tensors_of, try_out
from agent.deployment.unsafe_code import unsafe_code
from agent.optimize import Result
from agent.record.proof import Proof
from agent.recording.recorded_calls import draws_kept
from evaluator.audit_record import Life
from evaluator.evaluation import Candidate, CaseTiming, Verdict
from evaluator.hardware.devices import describe
from evaluator.judge.problem.reference import Reference
from evaluator.settings import BaselineName, Precision
from problems.errors import UsageError, first_line
from problems.source_file import read_source


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
    faster = [_is_faster(timed, against, path) for timed in proof.timed]
    original = _problem_model(proof) if module is None else module
    _check(original)
    cases = _cases(proof)
    misfits = [case.misfit(original) for case in cases]
    if all(misfits):
        raise UsageError(
            f"{path} was judged for another module than this {type(original).__name__}, which has"
            f" {misfits[0]}"
        )
    known = Deployment(gradient, devices=_devices_named(proof))
    used = {
        number: case for number, case in enumerate(cases) if faster[number] and not misfits[number]
    }
    if used and known.devices:
        file = imported(proof.candidate, source, path, str(known.devices[0]))
        known = _with_kernel(known, original, proof, file, used)
    original_class: Any = type(original)
    kind = _loaded_class(original_class)
    loaded = kind.__new__(kind)
    vars(loaded).update(
        vars(original),
        original=original,
        cases={timed.name: n in known.proven for n, timed in enumerate(proof.timed)},
        calls={"kernel": 0, "original": 0},
        last_reason="",
        _deployment=known,
        _compiled_call_impl=None,
    )
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

    model: nn.Module
    """On meta."""
    initial_arguments: list[Any]
    inputs: Callable[[], list[Any]]

    def misfit(self, module: nn.Module) -> str:
        shapes = {name: each.shape for name, each in tensors_of(self.model).items()}
        if {name: each.shape for name, each in tensors_of(module).items()} != shapes:
            return "weights of other names or shapes"
        parts = dict(module.named_modules())
        for name, part in self.model.named_modules():
            for key, value in vars(part).items():
                # What a number changes may be too small for a trial.
                if isinstance(value, float) and getattr(parts.get(name), key, value) != value:
                    return "another " + f"{name}.{key}".removeprefix(".")
        return ""

    def twin(self, module: nn.Module, device: torch.device) -> nn.Module:
        """A copy with the dtypes and modes of the problem's module."""
        twin, judged = copy.deepcopy(module).requires_grad_(False), tensors_of(self.model)
        for name, tensor in tensors_of(twin).items():
            tensor.data = tensor.to(device, judged[name].dtype)
        modes = {name: each.training for name, each in self.model.named_modules()}
        for name, each in twin.named_modules():
            each.training = modes.get(name, self.model.training)
        return twin


@cache
def _case(reference: str, precision: Precision, device: str) -> _Case:
    with as_the_judge_constructs():
        judged = Reference(reference, torch.device("cpu"), precision)
    inputs = partial(judged.problem.inputs, torch.device(device), judged.dtype)
    return _Case(judged.model.to("meta"), judged.initial_arguments, inputs)


def _cases(proof: Proof) -> list[_Case]:
    kind = "cuda" if proof.on_gpu else "cpu"
    return [_case(each.reference, proof.settings.precision, kind) for each in proof.cases]


def may_fit(proof: Proof, module: nn.Module) -> bool:
    """Whether `load` would try the kernel for it, and its parts have the judged names."""
    names = [name for name, _ in module.named_modules()]
    return any(
        [name for name, _ in case.model.named_modules()] == names and not case.misfit(module)
        for case in _cases(proof)
    )


def _problem_model(proof: Proof) -> nn.Module:
    device = torch.device("cuda" if proof.on_gpu else "cpu")
    with as_the_judge_constructs():
        model = Reference(proof.cases[0].reference, device, proof.settings.precision).model
    if proof.weights is not None:
        if not proof.weights.exists():
            raise UsageError(f"the weights {proof.weights} are gone: give load() the module")
        model.load_state_dict(load_file(proof.weights))
    return model


def _is_faster(timed: CaseTiming, against: str, path: Path) -> bool:
    if timed.timing is None or against == "eager":
        return timed.timing is not None and timed.timing.verdict is Verdict.FASTER
    if (figure := timed.timing.baselines.get(BaselineName(against))) is None:
        raise UsageError(
            f"the verdict on {path} has no figure against {against}: make a run with --baseline"
            f" {against}"
        )
    return figure.verdict is Verdict.FASTER


def _check(module: nn.Module) -> None:
    kind = type(module).__name__
    if isinstance(module, LoadedKernel):
        raise UsageError(f"this {kind} has a kernel already: give its .original")
    if taken := [name for name in LoadedKernel.__annotations__ if hasattr(module, name)]:
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


@torch.inference_mode(False)
def _with_kernel(
    known: Deployment, original: nn.Module, proof: Proof, file: ModuleType, used: dict[int, _Case]
) -> Deployment:
    here = next((each.device for each in tensors_of(original).values()), known.devices[0])
    device = here if here in known.devices else known.devices[0]
    twin = used[min(used)].twin(original, device)
    forms = {name: TensorForm.of(tensor) for name, tensor in tensors_of(twin).items()}
    judged_names = tensors_of(used[min(used)].model)
    names = [name for name in judged_names if not name.endswith("num_batches_tracked")]
    defaults = {
        each.name: each.default
        for each in inspect.signature(twin.forward).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    }
    values = tuple(defaults.values())
    with draws_kept():
        proven = {
            number: proven_call(twin, case.initial_arguments, case.inputs, values, device)
            for number, case in used.items()
        }
    kernel = built_kernel(proof, file, names, proven)
    # Cases that are constructed alike are one module: the smallest is tried.
    faults: dict[str, str] = {}
    for number, call in sorted(proven.items(), key=lambda item: item[1].arguments.size_bytes):
        if (kind := call.construction) not in faults:
            inputs, again = used[number].inputs, kind in kernel.tried
            with on_device(device):
                faults[kind] = try_out(kernel, number, call, twin, names, inputs, again=again)
    kernel.tried |= {kind for kind, fault in faults.items() if not fault}
    right = {n: call for n, call in proven.items() if not faults[call.construction]}
    if not right:
        raise UsageError(f"{file.__file__} can't be used: {next(iter(faults.values()))}")
    free = frozenset(name for name, each in twin.named_modules() if not may_read_mode(each))
    if any(".training" in proof.cases[number].reference for number in right):
        free -= {""}
    return replace(
        known,
        kernel=kernel,
        proven=right,
        names=tuple(defaults),
        defaults=values,
        weights={tuple(name.split(".")): forms[name] for name in names},
        tables={tuple(name.split(".")): tensor for name, tensor in tables_of(twin).items()},
        look=look_of(twin, free),
        free=free,
    )


@cache
def _loaded_class(kind: Any) -> type[LoadedKernel]:
    own = LoadedKernel.forward
    forward = FunctionType(own.__code__, own.__globals__, "forward", None, own.__closure__)
    vars(forward)["__signature__"] = inspect.signature(kind.forward)
    body = {"__module__": kind.__module__, "forward": forward}
    return type(f"Loaded{kind.__name__}", (LoadedKernel, kind), body)
