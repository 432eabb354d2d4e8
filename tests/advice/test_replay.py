"""What the rules say, as they are now, of what was measured on a GPU and committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.advice.case import SIDES
from tests.advice.outcome import Outcome, outcomes
from tests.advice.planted import CASES
from tests.advice.result import stored
from tests.advice.table import table
from tools.advice.thresholds import LIMITS

FOLDERS = sorted(Path(__file__).parent.glob("*.tar.xz"))
"""Named after the GPU; the table beside each is what the rules say of it."""
SHARE = 0.9
"""Of the cases that were measured."""


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def found(request: pytest.FixtureRequest) -> list[Outcome]:
    """Of the cases that have been run; a run may have been cut short."""
    return [outcome for outcome in outcomes(request.param) if "not run" not in outcome.problem]


def test_each_case_was_run() -> None:
    run = {(case, side) for folder in FOLDERS for case, side in stored(folder)}
    assert run == {(case.name, side) for case in CASES for side in SIDES}


def test_every_kernel_was_right_and_was_profiled(found: list[Outcome]) -> None:
    assert {o.case.name: o.problem for o in found if o.problem} == {}


def test_the_first_advice_names_the_planted_fault(found: list[Outcome]) -> None:
    missed = {o.case.name: [a.rule for a in o.planted.advice] for o in found if not o.named}
    assert sum(o.named for o in found) >= SHARE * len(found), missed


def test_the_twin_no_longer_gets_it_and_the_figure_moved_as_predicted(
    found: list[Outcome],
) -> None:
    named = [o for o in found if o.named]
    kept = {o.case.name: [a.rule for a in o.mended.advice] for o in named if not o.gone}
    still = {o.case.name: o.naming for o in named if not o.moved}
    assert sum(o.shown for o in found) >= SHARE * len(found), (kept, still)


def test_no_advice_is_about_what_a_kernel_does_not_do(found: list[Outcome]) -> None:
    for outcome in found:
        for replay in (outcome.planted, outcome.mended):
            figures, rules = replay.figures, {advice.rule for advice in replay.advice}
            accesses = [figures.get(f"shared_{kind}_wavefronts", 1.0) for kind in ("load", "store")]
            if not any(accesses):
                assert not rules & {"shared_memory_queue", "bank_conflicts"}, outcome.case.name
            if figures.get("matrix_intensity", 0.0) >= LIMITS.matrix_intensity:
                assert "busy_fma" not in rules, outcome.case.name
            if figures.get("traffic_ratio", 2.0) < LIMITS.least_traffic:
                assert "dram_bound" not in rules, outcome.case.name


def test_the_twin_is_faster(found: list[Outcome]) -> None:
    slower = [
        o.case.name
        for o in found
        if not o.problem
        if (o.mended.result.latency_us or 0.0) >= (o.planted.result.latency_us or 0.0)
    ]
    assert slower == []


def test_the_committed_table_is_the_present_one() -> None:
    for folder in FOLDERS:
        committed = folder.parent / f"{folder.name.removesuffix('.tar.xz')}.md"
        assert committed.read_text() == table(folder), (
            f"python -m tests.advice.table {folder} > {committed}"
        )
