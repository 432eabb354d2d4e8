"""The frozen mutants stay the same, and the judge refuses wrong kernels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.mutation.mutant import RULES, draw, of
from tests.mutation.run import ARGUMENTS, Judged, read, run, summary
from tests.mutation.subject import subjects


def test_frozen_kernels_give_the_same_mutants() -> None:
    drawn = "".join(mutant.id for mutant in draw(subjects(), 1, 1050))
    assert hashlib.sha256(drawn.encode()).hexdigest()[:12] == "0e9349ddbcac"


def test_a_draw_ends_when_there_are_no_more() -> None:
    few = [s for s in subjects() if s.name == "operators scalar"]
    every = draw(few, 1, 10_000)
    assert len({m.id for m in every}) == len(every) < 10_000
    assert {m.id for m in every} == {m.id for r in RULES for m in of(few[0], r)}


def test_the_score_counts_programs_that_are_wrong() -> None:
    equivalent = next(iter(ARGUMENTS["same code"]))
    verdicts = {
        "subject": "correct",
        "a": "incorrect",
        "b": "runtime_error",
        "c": "correct",
        "d": "build_error",
        equivalent: "correct",
    }
    said = summary(
        [
            Judged(
                id=id,
                subject="",
                family="loss",
                origin="hand",
                kind=None if id == "subject" else "cpp",
                rule="",
                shown="",
                status=status,
                reason="",
                message="",
            )
            for id, status in verdicts.items()
        ]
    )
    assert "1 kernels, 1 of them found right" in said
    assert "5 mutants, of which 1 did not build and 1 were shown to be equivalent" in said
    assert "killed: 2 of 3, 66.67% (95 % interval 20.77% to 93.85%, Wilson)" in said


CHANCE = {
    "no start",
    "not written",
    "not atomic",
    "no reduction over threads",
    "scratch shared by threads",
}
"""What such a program returns depends on what lay in memory, or on the other thread."""
SEED, MUTANTS = 3, 6
KERNELS = (
    "hand level1_4_softmax", "hand totals", "hand level1_6_layer_norm", "operators mask",
)  # fmt: skip
"""Of many families."""


@pytest.mark.slow
def test_wrong_kernels_are_refused(tmp_path: Path) -> None:
    kernels = [s for s in subjects() if s.name in KERNELS]
    assert len(kernels) == len(KERNELS)
    out = tmp_path / "mutation.jsonl"
    run(kernels, SEED, MUTANTS, out)
    records = read(out)
    assert all(r.status == "correct" for r in records if r.kind is None)
    judged = [r for r in records if r.kind and r.built and r.rule not in CHANCE]
    assert len(judged) >= MUTANTS - 3
    argued = {id for those in ARGUMENTS.values() for id in those}
    passed = [r for r in judged if not r.killed and r.id not in argued]
    assert [f"{r.id} {r.subject}: {r.rule}: {r.shown}" for r in passed] == []
    # What was judged is not judged again.
    run(kernels, SEED, MUTANTS, out)
    assert read(out) == records
