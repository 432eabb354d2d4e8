"""The honest corpus: kernels that look risky and are right, each a file with a header that says so.

A kernel's docstring begins with what is risky about it; the lines after it are `key: value`:
`problem` is the id of a problem that ships or the name of a file in `problems/`; with
`pace: slow` a kernel is left out of `make test`. `cpu/` and `gpu/` say where it runs; with
`also: gpu` one in `cpu/` runs there too.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.check import request_for
from evaluator.evaluation import EvaluationRequest
from evaluator.settings import Settings
from problems.loader import load_problem

_HERE = Path(__file__).parent
Place = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class HonestKernel:
    """One kernel of the corpus and what its header says."""

    name: str
    place: Place
    problem: str
    risk: str
    """What a careless judge could take for a cheat, one line."""
    fast: bool
    source: str

    def request(self, settings: Settings) -> EvaluationRequest:
        """What the judge is asked: as `python -m evaluator.check` asks it."""
        own = _HERE / "problems" / f"{self.problem}.py"
        problem = load_problem(str(own) if own.exists() else self.problem)
        return request_for(self.source, problem, settings)


def corpus(place: Place) -> list[HonestKernel]:
    """All kernels that run there, those of one problem side by side: they share its set-up."""
    read = [_read(path, place) for path in sorted(_HERE.glob("[cg]pu/*.py"))]
    kernels = [kernel for kernel in read if kernel is not None]
    return sorted(kernels, key=lambda kernel: (kernel.problem, kernel.name))


def _read(path: Path, place: Place) -> HonestKernel | None:
    """None for one that does not run there."""
    source = path.read_text()
    text = ast.get_docstring(ast.parse(source)) or ""
    risk, _, rest = text.partition("\n\n")
    header = dict(line.split(": ", 1) for line in rest.splitlines())
    if place not in (path.parent.name, header.pop("also", "")):
        return None
    problem, pace = header.pop("problem", ""), header.pop("pace", "fast")
    if not risk or not problem or pace not in ("fast", "slow") or header:
        raise ValueError(f"{path.name}: the docstring says what is risky, then `problem: ...`")
    return HonestKernel(
        name=path.stem,
        place=place,
        problem=problem,
        risk=" ".join(risk.split()),
        fast=pace == "fast",
        source=source,
    )
