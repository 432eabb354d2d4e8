"""The frozen mutants are whole, and the judge refuses wrong kernels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.mutation.corpus import mutants, subjects
from tests.mutation.run import ARGUMENTS, Judged, read, run, summary


def test_each_frozen_mutant_is_what_its_name_says() -> None:
    for mutant in mutants():
        text = f"{subjects()[mutant.subject].reference}\0{mutant.source}"
        assert hashlib.sha256(text.encode()).hexdigest()[:12] == mutant.id


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
KERNELS = (
    "hand level1_4_softmax", "hand totals", "hand level1_6_layer_norm", "operators mask",
)  # fmt: skip
"""Of many families."""


@pytest.mark.slow
def test_wrong_kernels_are_refused(tmp_path: Path) -> None:
    argued = {id for those in ARGUMENTS.values() for id in those}
    wrong = [
        mutant
        for mutant in mutants()
        if mutant.subject in KERNELS and mutant.rule not in CHANCE and mutant.id not in argued
    ][:6]
    kernels = [subjects()[name] for name in KERNELS]
    out = tmp_path / "mutation.jsonl"
    run(kernels, wrong, out)
    records = read(out)
    assert all(r.status == "correct" for r in records if r.kind is None)
    judged = [r for r in records if r.kind and r.built]
    assert len(judged) >= 4
    passed = [r for r in judged if not r.killed]
    assert [f"{r.id} {r.subject}: {r.rule}: {r.shown}" for r in passed] == []
    # What was judged is not judged again.
    run(kernels, wrong, out)
    assert read(out) == records
