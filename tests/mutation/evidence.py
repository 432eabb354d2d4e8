"""How a wrong version differs from the right kernel: in machine code, in bytes, in error.

`python -m tests.mutation.evidence < {reference, right, mutant, kind}` runs both in its own process,
since a mutant may crash it, on fresh inputs, on the judge's variations of them and on adversarial
ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from evaluator.builder.builder import Builder
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.bounds.work import count_work
from evaluator.judge.correctness.comparison import compare
from evaluator.judge.problem.exact_reference import ExactReference
from evaluator.judge.problem.reference import WEIGHT_SEED, Reference, flatten
from evaluator.judge.problem.variation import Kind, of_kind
from evaluator.settings import Precision
from evaluator.worker import build_stub
from evaluator.worker.weights import with_weights
from problems.cache_folder import cache_folder
from tests.mutation.mutant import Mutant

ROOT = Path(__file__).parents[2]
FRESH, VARIED = 8, 8
"""Draws of the problem's own inputs, and of them at the judge's other scales; the adversarial ones
come on top."""
_TIMEOUT_S = 300.0
_SCALED = (Kind.SMALLER, Kind.UNEVEN)

ADVERSARIAL: dict[str, Callable[[Tensor], Tensor]] = {
    "a thousand times as large": lambda x: x * 1e3,
    "a thousandth": lambda x: x * 1e-3,
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "whole numbers, with ties": torch.round,
    "sorted": lambda x: x.reshape(-1).sort().values.reshape(x.shape),
    "positive": torch.abs,
    "negative": lambda x: -x.abs(),
    "a thousand more": lambda x: x + 1e3,
    "a thousand less": lambda x: x - 1e3,
    "alternating sizes": lambda x: x * (1e4 ** (torch.arange(x.numel()).reshape(x.shape) % 2)),
    "one much larger": lambda x: _with_one(x, 1e6),
}


class Evidence(BaseModel):
    """What was found over all draws; errors over those that the judge makes too."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    same_code: bool | None
    """Whether the compiled libraries are byte for byte the same; None: the change is elsewhere."""
    draws: int
    differing: tuple[str, ...]
    """Draws with any other byte in any output."""
    refused: tuple[str, ...]
    """Draws on which the accept rule refuses the mutant and not the right kernel."""
    error: float | None
    """Largest RMSE of the mutant over the rms of the fp64 reference."""
    error_of_right: float | None
    """The same of the right kernel."""


def gather(mutant: Mutant) -> Evidence:
    """Raises `RuntimeError` when the mutant, or our own part, ends the process."""
    question = {
        "reference": mutant.subject.reference,
        "right": mutant.subject.source,
        "mutant": mutant.source,
        "kind": mutant.rule.kind,
    }
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.mutation.evidence"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_WAIT_POLICY": "passive", "TORCH_EXTENSIONS_DIR": folder},
            timeout=_TIMEOUT_S,
        )
    if done.returncode != 0:
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr[-2000:]}")
    return Evidence.model_validate_json(done.stdout.splitlines()[-1])


def _with_one(x: Tensor, value: float) -> Tensor:
    x = x.clone()
    x.view(-1)[x.numel() // 2] = value
    return x


class _Kernel:
    """A candidate in this process."""

    def __init__(self, source: str, builder: Builder) -> None:
        self.libraries: list[bytes] = []

        def build(request: BuildRequest) -> BuildOutcome:
            outcome = builder.build(request)
            if outcome.ok:
                self.libraries.append(Path(outcome.library).read_bytes())
            return outcome

        build_stub.install(build)
        self._namespace = types.ModuleType("candidate")
        exec(compile(source, "candidate.py", "exec"), self._namespace.__dict__)
        self._module: torch.nn.Module | None = None

    def construct(self, reference: Reference, state: dict[str, Tensor]) -> None:
        kind = self._namespace.ModelNew

        def build() -> torch.nn.Module:
            torch.manual_seed(WEIGHT_SEED)
            made: torch.nn.Module = kind(*reference.initial_arguments)
            return made

        self._module = with_weights(build, kind, state).module

    def __call__(self, arguments: list[Any]) -> list[Tensor]:
        assert self._module is not None
        with torch.no_grad():
            return [t.clone() for t in flatten(self._module(*_copied(arguments)))]


def _copied(arguments: list[Any]) -> list[Any]:
    return [a.clone() if isinstance(a, Tensor) else a for a in arguments]


def _draws(reference: Reference) -> Iterator[tuple[str, list[Any]]]:
    for number in range(FRESH):
        yield f"fresh {number}", reference.fresh_inputs(1000 + number)
    for number in range(VARIED):
        yield f"varied {number}", reference.varied_inputs(of_kind(8 * number, _SCALED[number % 2]))
    for name, change in ADVERSARIAL.items():
        values = reference.fresh_inputs(2000)
        yield (
            name,
            [change(v) if isinstance(v, Tensor) and v.is_floating_point() else v for v in values],
        )


def _same_bytes(a: list[Tensor], b: list[Tensor]) -> bool:
    return len(a) == len(b) and all(
        x.shape == y.shape
        and x.dtype == y.dtype
        and torch.equal(
            x.contiguous().reshape(-1).view(torch.uint8),
            y.contiguous().reshape(-1).view(torch.uint8),
        )
        for x, y in zip(a, b, strict=True)
    )


def _error(actual: list[Tensor], exact: list[Tensor] | None) -> float | None:
    """Largest RMSE over rms; None where it can't be told."""
    if exact is None or len(actual) != len(exact):
        return None
    errors = []
    for k, r in zip(actual, exact, strict=True):
        if k.shape == r.shape and r.is_floating_point():
            size = float(r.double().square().mean().sqrt())
            errors.append(float((k.double() - r.double()).square().mean().sqrt()) / (size or 1.0))
    return max(errors, default=None)


def _accepted(
    reference: Reference, arguments: list[Any], actual: list[Tensor], exact: list[Tensor] | None
) -> bool:
    """What the judge would say of these outputs."""
    expected = reference.expected(_copied(arguments))
    tensors = [a for a in arguments if isinstance(a, Tensor)]
    work = count_work(reference.model, arguments)
    return compare(
        actual, expected, exact, tensors, Precision.FP32, accumulation=work.accumulation
    ).ok


def _compare(question: dict[str, str]) -> Evidence:
    torch.set_num_threads(2)
    reference = Reference(question["reference"], torch.device("cpu"), Precision.FP32)
    builder = Builder(cache_folder())
    right, mutant = (_Kernel(question[who], builder) for who in ("right", "mutant"))
    differing: list[str] = []
    refused: list[str] = []
    errors: list[float] = []
    errors_of_right: list[float] = []
    count = 0
    for name, arguments in _draws(reference):
        count += 1
        state = reference.randomised(count)
        reference.set_state(state)
        for kernel in (right, mutant):
            kernel.construct(reference, state)
        theirs, ours = right(arguments), mutant(arguments)
        exact, _ = ExactReference(reference).outputs(partial(_copied, arguments))
        if not _same_bytes(theirs, ours):
            differing.append(name)
            if _accepted(reference, arguments, theirs, exact) and not _accepted(
                reference, arguments, ours, exact
            ):
                refused.append(name)
        if name not in ADVERSARIAL:
            for outputs, into in ((ours, errors), (theirs, errors_of_right)):
                error = _error(outputs, exact)
                if error is not None:
                    into.append(error)
    return Evidence(
        same_code=right.libraries == mutant.libraries if question["kind"] == "cpp" else None,
        draws=count,
        differing=tuple(differing),
        refused=tuple(refused),
        error=max(errors, default=None),
        error_of_right=max(errors_of_right, default=None),
    )


if __name__ == "__main__":
    print(_compare(json.load(sys.stdin)).model_dump_json())
