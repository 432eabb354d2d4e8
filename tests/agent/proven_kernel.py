"""Kernels with a second verdict beside them, as a run leaves them in `best/`."""

from __future__ import annotations

from pathlib import Path

from agent.record.proof import Proof
from evaluator.audit_record import DeepAudit, Life, LifeTrial
from evaluator.evaluation import Backend, Candidate, CaseTiming, Weights
from evaluator.hardware.devices import describe
from evaluator.settings import BaselineName, Precision, Settings
from problems.case import Case
from tests.evaluator.made_evaluations import baseline, correct, timing
from tests.task import as_candidate, task

NORM = task(
    "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight",
    init="self.weight = nn.Parameter(torch.ones(dim))",
    sizes={"dim": "48"},
    x="torch.randn(6, 48)",
)
IN_CPP = '''
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor norm(torch::Tensor x, torch::Tensor weight) {
  auto result = torch::empty_like(x);
  const int64_t rows = x.size(0), dim = x.size(1);
  const float *from = x.data_ptr<float>(), *w = weight.data_ptr<float>();
  float* to = result.data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < dim; ++i) sum += from[row * dim + i] * from[row * dim + i];
    const float factor = 1 / std::sqrt(sum / dim + 1e-6f);
    for (int64_t i = 0; i < dim; ++i) to[row * dim + i] = from[row * dim + i] * factor * w[i];
  }
  return result;
}
"""
built = load_inline("norm", SOURCE, functions=["norm"])
'''


def kernel_of(problem: str, forward: str = "", *, constructed: str = "", before: str = "") -> str:
    """The problem's module as a candidate: with another forward, and more in its constructor."""
    source = before + as_candidate(problem)
    if constructed:
        source = source.replace("    def forward", f"        {constructed}\n    def forward", 1)
    if forward:
        head = source[: source.index("    def forward")]
        line = source[len(head) :].partition("\n")[0]
        source = f"{head}{line}\n        {forward}\n"
    return source


NORM_IN_CPP = kernel_of(NORM, "return built.norm(x, self.weight)", before=IN_CPP)


def proven(
    folder: Path,
    problem: str,
    kernel: str,
    *,
    speedups: dict[str, float | None] | None = None,
    weights: Weights = "named",
    life: dict[Life, str] | None = None,
    device: str = "cpu",
    precision: Precision = Precision.FP32,
    compiled: float | None = None,
) -> Path:
    """`best/mine.py` and its verdict; `speedups`: of several cases, by what their sizes replace in
    the problem, such as `6 -> 12`."""
    figure = timing(2.0)
    if compiled is not None:
        rivals = figure.baselines | {BaselineName.COMPILE: baseline(compiled)}
        figure = figure.model_copy(update={"baselines": rivals})
    trials = {Life.MOVED: "holds"} | (life or {})
    audit = DeepAudit(
        occasion="asked",
        life=tuple(
            LifeTrial(life=each, outcome=how, note="" if how == "holds" else "it is broken")
            for each, how in trials.items()
        ),
    )
    cases, timed = [Case(sizes={}, weight=1.0, reference=problem)], ()
    if speedups:
        cases = []
        for text in speedups:
            old, new = text.split(" -> ")
            reference = problem.replace(old, new)
            cases.append(Case(sizes={"rows": new}, weight=1 / len(speedups), reference=reference))
        timed = tuple(
            CaseTiming(
                sizes=case.sizes, weight=case.weight, timing=None if s is None else timing(s)
            )
            for case, s in zip(cases, speedups.values(), strict=True)
        )
    verdict = correct().model_copy(
        update={
            "timing": figure,
            "cases": timed,
            "weights": weights,
            "audit": audit,
            "device": describe(device).name,
        }
    )
    backend = Backend.CPP if device == "cpu" else Backend.CUDA
    proof = Proof(
        problem="mine",
        candidate=Candidate(source=kernel, backend=backend).hash,
        backend=backend,
        settings=Settings(device=device, precision=precision),
        cases=tuple(cases),
        evaluation=verdict,
    )
    path = folder / "best" / "mine.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kernel)
    path.with_suffix(".json").write_text(proof.model_dump_json())
    return path
