"""Is a version that the judge accepted wrong at all? Compared with the right one, and with fp64.

`python -m experiments.bench.suites.equivalence JOB` runs in a process of its own, as it runs the
candidate; `JOB` is a file with a `Job`, and the `Difference` goes to stdout.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.record import Record

if TYPE_CHECKING:
    from torch import Tensor

_TIMEOUT_S = 120.0
_DRAWS = 3
_CHUNK = 2**24
_NO_FURTHER = 1.1


class Job(Record):
    """What is compared, and where."""

    reference: str
    source: str
    """Of the candidate; its `ModelNew` has the parameters of the reference's `Model`."""
    device: str
    calls: int
    """How many calls each draw takes; the last one's outputs are compared."""


class Difference(Record):
    """The worst of several draws with fresh inputs and the same parameters."""

    same: bool
    """All outputs are the same values as the right version's."""
    relative_error: float = 0.0
    """RMSE of a floating output against fp64, over the root mean square of the latter."""
    times_pytorch: float | None = None
    """That RMSE over the right version's; None where the right version has no error."""
    left_out: str = ""
    """The operator that the version leaves out."""

    @property
    def reason(self) -> str:
        """Why the version is not wrong; empty where it is."""
        without = f" without {self.left_out}" if self.left_out else ""
        if self.same:
            return f"the outputs are the same values on {_DRAWS} draws{without}"
        if self.times_pytorch is not None and self.times_pytorch <= _NO_FURTHER:
            return f"it is no further from fp64 than PyTorch on {_DRAWS} draws{without}"
        return ""


def difference(reference: str, source: str, device: str, calls: int) -> Difference | str:
    """How an accepted version differs from the right one; words where that can't be found out."""
    job = Job(reference=reference, source=source, device=device, calls=calls)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "job.json"
        path.write_text(job.model_dump_json())
        command = [sys.executable, "-m", "experiments.bench.suites.equivalence", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"not compared with the right version within {_TIMEOUT_S:g} s"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no words"])[-1]
        return f"not compared with the right version: {last[:200]}"
    return Difference.model_validate_json(done.stdout)


def compare(job: Job) -> Difference:
    """Run both versions and fp64 on each draw. Raises what they raise."""
    import torch

    from evaluator.judge.problem.exact_reference import ExactReference
    from evaluator.judge.problem.problem_file import ProblemFile
    from evaluator.judge.problem.reference import WEIGHT_SEED, Reference, flatten
    from evaluator.settings import Precision

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    device = torch.device(job.device)
    reference = Reference(job.reference, device, Precision.FP32)
    reference.set_state(reference.randomised(WEIGHT_SEED))
    exactly = ExactReference(reference)
    kind: Any = ProblemFile(job.source).module.ModelNew
    version = kind(*reference.initial_arguments).to(device)
    version.load_state_dict(reference.model.state_dict())
    same, relative, times = True, 0.0, 0.0
    right_is_exact = False
    for seed in range(_DRAWS):
        values = reference.fresh_inputs(seed)
        with torch.no_grad():
            for _ in range(job.calls):
                outputs = flatten(version(*values))
        right = reference.expected(values)
        exact, _ = exactly.outputs(partial(reference.fresh_inputs, seed))
        for k, one, r in zip(outputs, right, exact or right, strict=True):
            same = same and bool(torch.equal(k.nan_to_num(), one.nan_to_num()))
            if not k.is_floating_point():
                continue
            size, error, own = rms(r), rms(k, r), rms(one, r)
            relative = max(relative, error / size if size else math.inf if error else 0.0)
            right_is_exact = right_is_exact or (own == 0.0 and error > 0.0)
            times = max(times, error / own if own else 0.0)
    return Difference(
        same=same,
        relative_error=relative,
        times_pytorch=None if right_is_exact or relative == 0.0 else times,
        left_out=version._left_out,
    )


def rms(x: Tensor, less: Tensor | None = None) -> float:
    """The root mean square in fp64, of x or of what it is off, chunk by chunk."""
    flat = x.reshape(-1)
    other = None if less is None else less.reshape(-1)
    total = 0.0
    for start in range(0, flat.numel(), _CHUNK):
        part = flat[start : start + _CHUNK].double()
        if other is not None:
            part = part - other[start : start + _CHUNK].double()
        total += float(part.nan_to_num().square().sum())
    return math.sqrt(total / max(1, flat.numel()))


if __name__ == "__main__":
    print(compare(Job.model_validate_json(Path(sys.argv[1]).read_text())).model_dump_json())
