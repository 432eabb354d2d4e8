"""Run directories made by hand: what a run would have written, for readers of runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import yaml

from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.evaluation import Evaluation
from tests.agent.made_records import incorrect, profile, turn, write_turns
from tests.evaluator.made_evaluations import correct, unbuilt

Outcome = float | str | None
"""A speedup, `wrong`, or None for a kernel that does not build."""


def write_run(
    folder: Path, records: Iterable[TurnRecord], *, environment: str = "{}", **config: object
) -> Path:
    """A run directory of `records`, with `config` in its configuration."""
    write_turns(folder, records)
    (folder / "config.yaml").write_text(yaml.safe_dump({"output": str(folder), **config}))
    (folder / "environment.json").write_text(environment)
    return folder


def made_run(
    folder: Path,
    results: dict[str, Sequence[Outcome]],
    *,
    strategy: str = "refine",
    budget: int | None = None,
    limits: dict[str, object] | None = None,
    **fields: object,
) -> Path:
    """A run whose problems went as `results` says, call by call."""
    records = [
        made_turn(problem, call, outcome, strategy=strategy, **fields)
        for problem, outcomes in results.items()
        for call, outcome in enumerate(outcomes)
    ]
    longest = max(len(outcomes) for outcomes in results.values())
    return write_run(
        folder,
        records,
        strategy=strategy,
        budget=budget or longest,
        problems=list(results),
        **(limits or {}),
    )


def made_turn(
    problem: str, call: int, outcome: Outcome, *, strategy: str = "refine", **fields: object
) -> TurnRecord:
    place = {"sample": call, "turn": 0} if strategy == "sample" else {"sample": 0, "turn": call}
    if isinstance(outcome, float | int):
        fields = {"profile": profile().model_dump(), **fields}
    return turn(
        call,
        evaluation_of(outcome),
        problem=problem,
        call=call,
        strategy=strategy,
        candidate=f"{crc32(f'{problem} {call}'.encode()):016x}",
        **{**place, **fields},
    )


def evaluation_of(outcome: Outcome) -> Evaluation:
    if outcome is None:
        return unbuilt("error\n" * 500, seconds=1.5, headers="light")
    if outcome == "wrong":
        return incorrect()
    return correct(float(outcome))


def names(count: int) -> list[str]:
    return [f"level{1 + place % 3}_{place + 1}_problem" for place in range(count)]


def random_results(count: int, calls: int, *, gain: float, seed: int) -> dict[str, list[Outcome]]:
    """Problems of differing hardness, with a third of the calls failing."""
    generator = np.random.default_rng(seed)
    results: dict[str, list[Outcome]] = {}
    for name in names(count):
        hardness = np.exp(generator.normal(0.2, 0.3))
        results[name] = [
            None
            if (chance := generator.random()) < 0.15
            else "wrong"
            if chance < 0.33
            else float(hardness * gain ** (call / calls) * np.exp(generator.normal(0, 0.1)))
            for call in range(calls)
        ]
    return results


def with_kernels(folder: Path, source: str) -> RunFiles:
    """Give every candidate of a run a source, and every problem a best kernel."""
    files = RunFiles(folder)
    for record in files.turns():
        if record.candidate:
            path = files.kernel_path(record.candidate)
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
            best = files.best_path(record.problem)
            best.parent.mkdir(exist_ok=True)
            best.write_text(source)
    return files
