"""Right kernels to be made wrong: the offline tuner's, recorded ones, operators, some by hand.

Those by hand are files. The others are frozen, so that the mutants stay the same when the tuner
changes: `FROZEN` has a `Subject` a line, as the commit of its name made them.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Literal

import torch

from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision

Origin = Literal["tuner", "recorded", "operators", "hand"]
FROZEN = Path(__file__).parent / "frozen" / "81ecc7a.jsonl.xz"
KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Subject:
    """A right kernel and the problem that it solves."""

    name: str
    family: str
    origin: Origin
    reference: str
    source: str

    @property
    def model(self) -> torch.nn.Module:
        """The reference's module."""
        return _run(self.reference).model

    @property
    def outputs(self) -> tuple[torch.Tensor, ...]:
        """What the reference returns for some inputs."""
        return _run(self.reference).outputs

    @property
    def floating_names(self) -> frozenset[str]:
        """Names in the reference's `forward` that hold floating tensors at its end."""
        return _run(self.reference).floating_names


@dataclass(frozen=True)
class _Run:
    """A reference, run once."""

    model: torch.nn.Module
    outputs: tuple[torch.Tensor, ...]
    floating_names: frozenset[str]


@cache
def _run(reference: str) -> _Run:
    problem = Reference(reference, torch.device("cpu"), Precision.FP32)
    code = type(problem.model).forward.__code__
    names: set[str] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "return" and frame.f_code is code:
            names.update(
                name
                for name, value in frame.f_locals.items()
                if isinstance(value, torch.Tensor) and value.is_floating_point()
            )

    values = problem.fresh_inputs(1)
    sys.setprofile(watch)
    try:
        outputs = tuple(problem.expected(values))
    finally:
        sys.setprofile(None)
    return _Run(problem.model, outputs, frozenset(names))


@cache
def subjects() -> tuple[Subject, ...]:
    """All of them, in a fixed order."""
    text = lzma.decompress(FROZEN.read_bytes()).decode()
    frozen = [Subject(**json.loads(line)) for line in text.splitlines()]
    return (*frozen, *_by_hand({subject.name: subject for subject in frozen}))


def by_operators(reference: str) -> str:
    """The reference itself as a candidate."""
    return reference.replace("class Model(", "class ModelNew(").replace(
        "super(Model,", "super(ModelNew,"
    )


def _by_hand(frozen: Mapping[str, Subject]) -> Iterator[Subject]:
    """A file that is named after a problem solves it; in any other the reference comes last."""
    for path in sorted(KERNELS.glob("*.py")):
        kernel, found, rest = path.read_text().partition("class Model(")
        if found:
            family, reference = "hand", f"import torch\nimport torch.nn as nn\n\n{found}{rest}"
        else:
            problem = frozen[f"operators {path.stem}"]
            family, reference = problem.family, problem.reference
        yield Subject(f"hand {path.stem}", family, "hand", reference, kernel)
