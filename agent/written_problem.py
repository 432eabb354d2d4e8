"""A module at hand, or a part of a user's model, becomes a problem file with its weights beside."""

from __future__ import annotations

import hashlib
import os
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


def from_module(model: Any, inputs: Any, name: str = "") -> WrittenProblem:
    """Of the submodule `name` (empty: all of `model`) when `model` runs with `inputs`: a tuple or
    list of arguments, a dict of them by name, or a list of such. The same module, weights and
    inputs give the same file."""
    import torch
    from safetensors.torch import save

    from agent.module_source import problem_source
    from agent.recording.recorded_calls import record, submodule

    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"optimize() takes a problem or a torch.nn.Module, no {type(model)}")
    if inputs is None:
        raise UsageError(
            f"optimize({type(model).__name__}(...)) needs inputs: a tuple of what forward takes,"
            " a dict by name, or a list of such"
        )
    cases, notes = record(model, inputs, name)
    module = submodule(model, name)
    source = problem_source(module, cases)
    # One that several names share is written for each.
    weights = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in module.state_dict().items()
        if isinstance(value, torch.Tensor)
    }
    data = save(weights)
    digest = hashlib.sha256(source.encode() + data).hexdigest()[:8]
    path = PROBLEMS / f"{type(module).__name__}_{digest}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    if weights:
        path.with_suffix(".safetensors").write_bytes(data)
    path.write_text(source, encoding="utf-8")
    halves = {torch.bfloat16: Precision.BF16, torch.float16: Precision.FP16}
    found = [halves[each.dtype] for each in module.parameters() if each.dtype in halves]
    return WrittenProblem(path, found[0] if found else None, notes)


def from_file(reference: str, name: str) -> WrittenProblem:
    """Of what a function of a user's file builds, which runs in a process of its own."""
    # What it prints goes to stderr.
    with ProcessPoolExecutor(1, get_context("spawn"), os.dup2, (2, 1)) as pool:
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


def _from_file(reference: str, name: str) -> WrittenProblem:
    from agent.recording.model_file import build

    return from_module(*build(reference), name)
