"""Right kernels to be made wrong: the offline tuner's, recorded ones, operators, some by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Literal

import torch

from agent.tuner.errors import CannotTrace
from evaluator.judge.problem.reference import Reference
from evaluator.settings import Precision
from problems.loader import load_suite
from problems.problem import SizeClass
from tests.agent.tuner.families import FAMILIES
from tests.agent.tuner.quirks import QUIRKS
from tests.agent.tuner.written import written

Origin = Literal["tuner", "recorded", "operators", "hand"]
ROOT = Path(__file__).parents[2]
KERNELS = Path(__file__).parent / "kernels"
RECORDED = ("relay-by-hand-cpu", "refine-tuner-cpu")
BOLD = {
    "threads": "all", "vec": "16", "maths": "poly", "stage": "stack", "stores": "stream",
    "chunk": "1", "passes": "fewest", "acc": "fp64",
}  # fmt: skip
_BOLD_FAMILIES = {"softmax", "normalization", "reduction", "loss"}
_LONGEST = 20_000
"""Characters of a kernel: longer ones take too long to build again and again."""


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
    return (*_of_problems(), *_small(), *_recorded(), *_by_hand())


def by_operators(reference: str) -> str:
    """The reference itself as a candidate."""
    return reference.replace("class Model(", "class ModelNew(").replace(
        "super(Model,", "super(ModelNew,"
    )


def _tuned(reference: str, **choices: str) -> str:
    try:
        source = written(reference, **choices)
    except CannotTrace:
        return ""
    return source if len(source) < _LONGEST else ""


@cache
def _problems() -> dict[str, tuple[str, str]]:
    """By id: category and reference at the CPU's sizes."""
    return {p.id: (p.category or "other", p.reference(SizeClass.CPU)) for p in load_suite()}


def _of_problems() -> Iterator[Subject]:
    for name, (family, reference) in _problems().items():
        yield Subject(f"operators {name}", family, "operators", reference, by_operators(reference))
        careful = _tuned(reference, threads="all")
        if careful:
            yield Subject(f"tuner {name}", family, "tuner", reference, careful)
        bold = _tuned(reference, **BOLD) if family in _BOLD_FAMILIES else ""
        if bold:
            yield Subject(f"tuner, bold {name}", family, "tuner", reference, bold)


def _small() -> Iterator[Subject]:
    for name, reference in (FAMILIES | QUIRKS).items():
        yield Subject(f"operators {name}", "small", "operators", reference, by_operators(reference))
        tuned = _tuned(reference, threads="all")
        if tuned:
            yield Subject(f"tuner {name}", "small", "tuner", reference, tuned)


def _recorded() -> Iterator[Subject]:
    for run in RECORDED:
        for path in sorted((ROOT / "experiments" / "recordings" / run / "best").glob("*.py")):
            family, reference = _problems()[path.stem]
            yield Subject(f"{run} {path.stem}", family, "recorded", reference, path.read_text())


def _by_hand() -> Iterator[Subject]:
    """A file that is named after a problem solves it; in any other the reference comes last."""
    for path in sorted(KERNELS.glob("*.py")):
        kernel, found, rest = path.read_text().partition("class Model(")
        if found:
            family, reference = "hand", f"import torch\nimport torch.nn as nn\n\n{found}{rest}"
        else:
            family, reference = _problems()[path.stem]
        yield Subject(f"hand {path.stem}", family, "hand", reference, kernel)
