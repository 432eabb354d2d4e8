"""A module at hand -> a problem file in KernelBench's format.

What is written is run once beside the module: the file must give what the module gives.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from agent.class_source import class_source
from agent.recording.difference import difference
from agent.recording.recorded_calls import Case, draws_kept, run
from agent.recording.recorded_inputs import inputs_source
from problems.errors import UsageError, first_line


def problem_source(module: nn.Module, cases: Sequence[Case]) -> str:
    """The text of a problem file for `module`, an instance of any class, in these cases.

    Raises `UsageError` for what can't be written.
    """
    init_inputs = "def get_init_inputs():\n    return []\n"
    source = "\n\n\n".join([class_source(module), inputs_source(cases), init_inputs])
    try:
        with draws_kept():
            _compare(source, module, cases[0])
    except Exception as error:
        kind = type(module).__name__
        raise UsageError(
            f"{kind}, written down, does not do what it did ({first_line(error)}); write a file in"
            " KernelBench's format"
        ) from error
    return source


def _compare(source: str, module: nn.Module, case: Case) -> None:
    """Raise an exception of any kind unless the file's model gives what the module does."""
    weights = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    place = next(iter(weights.values()), torch.empty(0)).device
    namespace: dict[str, Any] = {"__name__": "problem"}
    exec(compile(source, f"<problem of {type(module).__name__}>", "exec"), namespace)
    namespace["get_inputs"]()
    model = namespace["Model"]().to(place)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        value.data.copy_(weights.pop(name))
    if weights:
        raise ValueError(f"it has no {next(iter(weights))}")
    given = run(copy.deepcopy(module), [case.call])
    # The judge gives nothing by name.
    off, allowed = difference(given, run(model, [(case.arguments, {})]))
    if not off <= allowed:
        kind = f"differ by {off:.1e} of their size" if off == off else "are no tensors, or others"
        raise ValueError(f"results {kind}")
