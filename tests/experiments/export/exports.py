"""What the tests of exports read, and a run whose kernels got a second verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.record.archive import unpacked
from agent.record.confirmation import Confirmation
from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.evaluation import Evaluation
from tests.agent.made_records import keep
from tests.command import ROOT

RECORDINGS = ROOT / "experiments/recordings"
REFINED, SAMPLED, BY_HAND = (
    unpacked(RECORDINGS / f"{name}.tar.xz")
    for name in ("refine-tuner-cpu", "sample-tuner-cpu", "relay-by-hand-cpu")
)


def confirm(run: Path, record: TurnRecord, evaluation: Evaluation) -> None:
    """Add a second verdict on a turn's kernel."""
    assert record.candidate
    timing = record.evaluation.timing
    second = Confirmation(
        problem=record.problem,
        candidate=record.candidate,
        sample=record.sample,
        turn=record.turn,
        found=timing.speedup if timing else None,
        evaluation=evaluation,
    )
    path = RunFiles(run).confirmations_path(record.problem)
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(second.model_dump_json() + "\n")


def add_texts(run: Path, records: Sequence[TurnRecord]) -> None:
    """Write prompts and answers for turns that share hashes with nothing else."""
    for record in records:
        keep(run, record, prompt=f"Write call {record.call}.", answer=f"Answer {record.call}")
