"""A module at hand, or a part of a user's model, becomes a problem file with its weights beside."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from agent.config.options import RunOptions
from agent.resolution import Resolution, resolve
from evaluator.command.option import option_name
from evaluator.settings import Precision
from problems.errors import UsageError

PROBLEMS = Path("runs") / "problems"
"""Where problem files made from modules are kept, by class and hash."""


@dataclass(frozen=True)
class WrittenProblem:
    path: Path
    """The module's weights lie beside it, in `NAME.safetensors`."""
    precision: Precision | None
    """What to judge in, where the weights are in half precision."""
    notes: tuple[str, ...] = ()


def from_module(model: Any, inputs: Any, name: str | None = None) -> WrittenProblem:
    """The same module, weights and inputs give the same file.

    `inputs` is a function like KernelBench's `get_inputs`, or what `forward` takes, in a list or a
    dict by name: tensors, shapes, pairs of a shape and a dtype's name, or numbers. With `name`, the
    problem is that submodule (empty: all of `model`), and `inputs` are those of `calls_of`.
    """
    import torch

    from agent.module_source import examples, problem_source
    from agent.recording.recorded_calls import record, served, submodule

    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"optimize() takes a problem or a torch.nn.Module, no {type(model)}")
    if inputs is None:
        raise UsageError(
            f"optimize({type(model).__name__}(...)) needs inputs: a function like KernelBench's"
            " get_inputs, or a list of example tensors or shapes"
        )
    if callable(inputs):
        return _written(model, problem_source(model, inputs), ())
    place = next((each.device for each in model.parameters()), torch.device("cpu"))
    # What the user draws afterwards stays the same.
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        given = examples(inputs, place) if name is None else inputs
        cases, notes = served(record(model, given, name or ""))
    module = submodule(model, name or "")
    return _written(module, problem_source(module, cases), notes)


def from_file(reference: str, name: str) -> WrittenProblem:
    """Of what a function of a user's file builds, which runs in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), _print_to_stderr) as pool:
        try:
            return pool.submit(_from_file, reference, name).result()
        except BrokenProcessPool:
            raise UsageError(f"the process that ran {reference} died; run it by itself") from None


def resolve_written(written: WrittenProblem, options: RunOptions) -> Resolution:
    """Raises `UsageError` where the options name problems, too."""
    if named := {"problems", "levels", "filter", "suite"} & options.model_fields_set:
        raise UsageError(f"{option_name(RunOptions, min(named))} beside a model: leave one out")
    given: dict[str, object] = {"problems": (str(written.path),)}
    if written.precision and "precision" not in options.model_fields_set:
        given["precision"] = written.precision
    resolution = resolve(options.model_copy(update=given))
    return replace(resolution, notes=(*written.notes, *resolution.notes))


def _print_to_stderr() -> None:
    os.dup2(2, 1)


def _from_file(reference: str, name: str) -> WrittenProblem:
    from agent.recording.model_file import build

    return from_module(*build(reference), name)


def _written(module: Any, source: str, notes: Sequence[str]) -> WrittenProblem:
    import torch
    from safetensors.torch import save

    state = module.state_dict()
    # One that several names share is written for each.
    weights = save(
        {
            name: value.detach().cpu().contiguous().clone()
            for name, value in state.items()
            if isinstance(value, torch.Tensor)
        }
    )
    digest = hashlib.sha256(source.encode() + weights).hexdigest()[:8]
    path = PROBLEMS / f"{type(module).__name__}_{digest}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    if state:
        path.with_suffix(".safetensors").write_bytes(weights)
    path.write_text(source, encoding="utf-8")
    halves = {torch.bfloat16: Precision.BF16, torch.float16: Precision.FP16}
    found = [halves[each.dtype] for each in module.parameters() if each.dtype in halves]
    return WrittenProblem(path, found[0] if found else None, tuple(notes))
