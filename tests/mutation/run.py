"""Judges wrong versions of right kernels: `python -m tests.mutation.run --out F`.

The real judge in its own process, one mutant after the other. Repeat the command to continue a run:
what `F` holds is not judged again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, ConfigDict

from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from experiments.analysis.statistics import wilson
from tests.mutation.corpus import Kind, Mutant, Origin, Subject, mutants, subjects

ARGUMENTS: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("arguments.json").read_text()
)
"""By class and id of the mutant: why one that was found correct is no wrong program, or why it may
pass all the same. `RESULT.md` says what each class means."""
EQUIVALENT = {
    id
    for kind in ("same code", "same bytes", "same function", "as exact")
    for id in ARGUMENTS[kind]
}

_BATCH = 120
"""Mutants that are sorted by problem, so that few problems have to be set up."""
_KILLING = (Status.INCORRECT, Status.RUNTIME_ERROR, Status.TIMEOUT, Status.INTEGRITY)
_TIMING_S = 0.001
"""Three calls are verified before timing, then a quarter of the timed ones, of which there are at
least six."""


class Judged(BaseModel):
    """The verdict on a mutant, or on a subject itself, which has no rule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    subject: str
    family: str
    origin: Origin
    kind: Kind | None
    rule: str
    shown: str
    status: Status
    reason: str
    message: str

    @property
    def built(self) -> bool:
        """Whether it was a program at all."""
        return self.status is not Status.BUILD_ERROR

    @property
    def killed(self) -> bool:
        return self.status in _KILLING


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--limit", type=int, help="how many mutants; left out: all")
    options.add_argument("--out", type=Path, default=Path("mutation.jsonl"))
    chosen = options.parse_args()
    run(list(subjects().values()), mutants()[: chosen.limit], chosen.out)
    print(summary(read(chosen.out)))


def run(kernels: Sequence[Subject], wrong: Sequence[Mutant], out: Path) -> None:
    """Judge all kernels, then the mutants of those that are right; append to `out`."""
    done = {record.id: record for record in read(out)}

    def judge(executor: LocalExecutor, subject: Subject, mutant: Mutant | None = None) -> Judged:
        id = mutant.id if mutant else f"subject {subject.name}"
        if id not in done:
            done[id] = _judge(executor, id, subject, mutant)
            with out.open("a") as file:
                file.write(done[id].model_dump_json() + "\n")
            if mutant and done[id].status is Status.CORRECT:
                print(f"survived: {id} {subject.name}: {mutant.rule}: {mutant.shown}")
        return done[id]

    with LocalExecutor("cpu") as executor:
        right = {}
        for subject in kernels:
            record = judge(executor, subject)
            if record.status is Status.CORRECT:
                right[subject.name] = subject
            else:
                print(f"not right itself: {subject.name}: {record.reason} {record.message}")
        of_right = [mutant for mutant in wrong if mutant.subject in right]
        for start in range(0, len(of_right), _BATCH):
            batch = of_right[start : start + _BATCH]
            for mutant in sorted(batch, key=lambda mutant: right[mutant.subject].reference):
                judge(executor, right[mutant.subject], mutant)


def read(path: Path) -> list[Judged]:
    """The records of a file that may not exist yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Judged.model_validate_json(line) for line in lines]


def summary(records: Sequence[Judged]) -> str:
    """How many were killed, with Wilson's interval, and tables by verdict, kind, origin and rule.

    Mutants that were shown to be no wrong programs count apart.
    """
    kernels = [r for r in records if r.kind is None]
    made_wrong = [r for r in records if r.kind is not None]
    judged = [r for r in made_wrong if r.built and r.id not in EQUIVALENT]
    killed = sum(r.killed for r in judged)
    right = sum(r.status is Status.CORRECT for r in kernels)
    lines = [
        f"{len(kernels)} kernels, {right} of them found right",
        f"{len(made_wrong)} mutants, of which {sum(not r.built for r in made_wrong)} did not build "
        f"and {sum(r.id in EQUIVALENT for r in made_wrong)} were shown to be equivalent",
    ]
    if judged:
        share = wilson(killed, len(judged))
        lines.append(
            f"killed: {killed} of {len(judged)}, {share.value:.2%} "
            f"(95 % interval {share.low:.2%} to {share.high:.2%}, Wilson)"
        )
    frame = pd.DataFrame([{**r.model_dump(mode="json"), "killed": r.killed} for r in judged])
    for names in (["status", "reason"], ["kind"], ["origin"], ["family"], ["kind", "rule"]):
        if judged:
            lines += ["", frame.groupby(names).killed.agg(judged="size", killed="sum").to_string()]
    return "\n".join(lines)


def _judge(executor: LocalExecutor, id: str, subject: Subject, mutant: Mutant | None) -> Judged:
    evaluation = executor.evaluate(
        EvaluationRequest(
            problem_id="mutation",
            reference=subject.reference,
            candidate=Candidate(
                source=mutant.source if mutant else subject.source, backend=Backend.CPP
            ),
            settings=Settings(timing_seconds=_TIMING_S, call_timeout_s=20.0),
        )
    )
    return Judged(
        id=id,
        subject=subject.name,
        family=subject.family,
        origin=subject.origin,
        kind=mutant.kind if mutant else None,
        rule=mutant.rule if mutant else "",
        shown=mutant.shown if mutant else "",
        status=evaluation.status,
        reason=evaluation.reason,
        message=evaluation.message[:200],
    )


if __name__ == "__main__":
    main()
