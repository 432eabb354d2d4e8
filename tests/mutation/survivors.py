"""What is known of the mutants that passed: `python -m tests.mutation.survivors RUN.jsonl`.

Writes `survivors.jsonl` beside the run: the record and the evidence of each; those that are there
already are left as they are.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from evaluator.executor.local import LocalExecutor
from tests.mutation.evidence import Evidence, gather
from tests.mutation.judged import USUAL_S, Judged, judge, read
from tests.mutation.mutant import Mutant, draw
from tests.mutation.subject import CORPORA, subjects


class Survivor(BaseModel):
    """A mutant that was found correct, and how it differs from the right kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    record: Judged
    usual: Judged
    """The verdict with as much timing as users give, hence with more calls that are verified."""
    evidence: Evidence | None
    """None: it ended the process that compared it."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("--corpus", choices=CORPORA, default=CORPORA[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--limit", type=int, default=1000)
    options.add_argument("--out", type=Path, default=Path("survivors.jsonl"))
    chosen = options.parse_args()
    known = {survivor.record.id for survivor in read_survivors(chosen.out)}
    records = {r.id: r for r in read(chosen.run) if r.kind and r.built and not r.killed}
    wanted = records.keys() - known
    right = {r.subject for r in read(chosen.run) if r.kind is None and r.status == "correct"}
    kernels = [subject for subject in subjects(chosen.corpus) if subject.name in right]
    with LocalExecutor("cpu") as executor:
        for mutant in draw(kernels, chosen.seed, chosen.limit):
            if mutant.id in wanted:
                survivor = Survivor(
                    record=records[mutant.id],
                    usual=judge(executor, mutant, USUAL_S),
                    evidence=_evidence(mutant),
                )
                with chosen.out.open("a") as file:
                    file.write(survivor.model_dump_json() + "\n")


def read_survivors(path: Path) -> list[Survivor]:
    """The records of a file that may not exist yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Survivor.model_validate_json(line) for line in lines]


def _evidence(mutant: Mutant) -> Evidence | None:
    try:
        return gather(mutant)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{mutant.id}: {error}")
        return None


if __name__ == "__main__":
    main()
