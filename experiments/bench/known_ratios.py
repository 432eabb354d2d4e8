"""`python -m experiments.bench.known_ratios`: how often the verdict on speed is right.

The reference repeats one operation 100 times, the candidate the same operation fewer times, as many
times, or more, so the true ratio is known. Each run is one whole evaluation with a worker of its
own. Results are appended to a file, so a long measurement can be made in parts.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from evaluator.command.command_line import serve
from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Verdict
from evaluator.record import Record
from evaluator.settings import Settings

REPEATS = 100
_REPEATS_OF_CANDIDATES = (100, 98, 95, 102, 105)
_ELEMENTS = {"cpu": 2**17, "cuda": 2**24}

_REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        for _ in range({repeats}):
            y = torch.sin(x)
        return y

def get_inputs():
    return [torch.randn({elements})]

def get_init_inputs():
    return []
"""


class Run(Record):
    """One evaluation of a candidate whose speed is known."""

    device: str
    true_ratio: float
    """Of the reference's work over the candidate's."""
    verdict: Verdict
    speedup: float
    speedup_low: float
    speedup_high: float
    pairs: int
    disturbed_blocks: int
    stopped: str

    @property
    def right(self) -> bool | None:
        """Whether the verdict is true; None where it abstained."""
        if self.verdict is Verdict.UNCLEAR:
            return None
        if self.true_ratio == 1.0:
            return self.verdict is Verdict.SAME
        return self.verdict is (Verdict.FASTER if self.true_ratio > 1.0 else Verdict.SLOWER)

    @property
    def covered(self) -> bool:
        """Whether the 95 % interval holds the true ratio."""
        return self.speedup_low <= self.true_ratio <= self.speedup_high


def request(repeats: int, settings: Settings) -> EvaluationRequest:
    """A candidate that does `repeats` times what the reference does `REPEATS` times."""
    elements = _ELEMENTS[settings.device.partition(":")[0]]
    source = _REFERENCE.format(repeats=repeats, elements=elements)
    return EvaluationRequest(
        problem_id="known_ratio",
        reference=_REFERENCE.format(repeats=REPEATS, elements=elements),
        candidate=Candidate(
            source=source.replace("class Model(", "class ModelNew("), backend=Backend.CPP
        ),
        settings=settings,
    )


def table(runs: Sequence[Run]) -> str:
    """A Markdown table, one row for each true ratio."""
    lines = [
        "| true ratio | runs | faster | same | slower | unclear | wrong "
        "| wrong, at most (95 %) | measured, median | its 95 % intervals hold the truth |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for ratio in sorted({run.true_ratio for run in runs}):
        mine = [run for run in runs if run.true_ratio == ratio]
        count: Counter[str] = Counter(run.verdict for run in mine)
        wrong = sum(run.right is False for run in mine)
        lines.append(
            f"| {ratio:.3f} | {len(mine)} | {count['faster']} | {count['same']} "
            f"| {count['slower']} | {count['unclear']} | {wrong} "
            f"| {100 * at_most(wrong, len(mine)):.1f} % "
            f"| {median(run.speedup for run in mine):.4f} "
            f"| {100 * sum(run.covered for run in mine) / len(mine):.0f} % |"
        )
    return "\n".join(lines)


def at_most(wrong: int, runs: int) -> float:
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson, Biometrika 1934).

    The share p at which seeing `wrong` or fewer of `runs` has a chance of 5 %.
    """
    low, high = wrong / runs, 1.0
    if wrong == runs:
        return 1.0
    for _ in range(60):
        p = (low + high) / 2
        chance = sum(math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(wrong + 1))
        low, high = (p, high) if chance > 0.05 else (low, p)
    return high


def measure(settings: Settings, repeats: Sequence[int], out: Path) -> None:
    """Judge one candidate for each entry and append each result to `out`, a JSON object a line.

    Raises `InfrastructureError` where a candidate is refused: all of these are right.
    """
    from evaluator.errors import InfrastructureError
    from evaluator.executor.local import LocalExecutor

    with LocalExecutor(settings.device) as executor, out.open("a") as file:
        for number, count in enumerate(repeats):
            evaluation = executor.evaluate(request(count, settings))
            timing = evaluation.timing
            if timing is None:
                raise InfrastructureError(
                    f"a right candidate was refused: {evaluation.reason} {evaluation.message}"
                )
            run = Run(
                device=evaluation.device,
                true_ratio=REPEATS / count,
                verdict=timing.verdict,
                speedup=timing.speedup,
                speedup_low=timing.speedup_low,
                speedup_high=timing.speedup_high,
                pairs=timing.baselines[next(iter(timing.baselines))].pairs,
                disturbed_blocks=timing.disturbed_blocks,
                stopped=timing.stopped,
            )
            file.write(run.model_dump_json() + "\n")
            file.flush()
            print(
                f"{number + 1}/{len(repeats)}: {run.true_ratio:.3f} measured {run.speedup:.4f} "
                f"[{run.speedup_low:.4f}, {run.speedup_high:.4f}] {run.verdict}",
                file=sys.stderr,
                flush=True,
            )


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    out: Annotated[Path, typer.Option(help="File of results; more are appended to it.")],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    runs: Annotated[int, typer.Option(help="Of each ratio but 1.")] = 20,
    equal: Annotated[
        int, typer.Option(help="Of equal candidates. With 0 runs as well: the table only.")
    ] = 100,
    seconds: Annotated[float, typer.Option(help="Longest time of timing in each run.")] = 2.0,
) -> None:
    """Measure how often the verdict on speed is right; a Markdown table on stdout."""
    from evaluator.hardware.device_choice import resolve_device

    settings = Settings(device=resolve_device(device), timing_seconds=seconds)
    order = [REPEATS] * equal + [
        count for count in _REPEATS_OF_CANDIDATES if count != REPEATS for _ in range(runs)
    ]
    random.SystemRandom().shuffle(order)
    measure(settings, order, out)
    results = [Run.model_validate_json(line) for line in out.read_text().splitlines()]
    print(table(results))


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.known_ratios"))
