"""The measurement of overhead in small: everything is there, and counts are right."""

from pathlib import Path

import pytest

from agent.record.turn_log import read_turns
from experiments.bench.loop.overhead import OverheadFigures, measure_overhead, told
from problems.errors import UsageError
from problems.loader import load_suite

PROBLEMS, SAMPLES, TURNS = 3, 4, 3


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[OverheadFigures, Path]:
    folder = tmp_path_factory.mktemp("overhead") / "runs"
    figures = measure_overhead(PROBLEMS, SAMPLES, refine_turns=TURNS, workers=2, folder=folder)
    return figures, folder


@pytest.mark.slow
def test_every_turn_was_taken_once(measured: tuple[OverheadFigures, Path]) -> None:
    figures, folder = measured
    assert (figures.sample.turns, figures.refine.turns) == (PROBLEMS * SAMPLES, PROBLEMS * TURNS)
    assert figures.sample.resume_calls == figures.refine.resume_calls == 0
    for strategy, turns in (("sample", PROBLEMS * SAMPLES), ("refine", PROBLEMS * TURNS)):
        records = list(read_turns(folder / strategy))
        keys = {(record.problem, record.sample, record.turn) for record in records}
        # Those of the run, and after the kill one more and what was in flight beside it.
        assert len(keys) == len(records) and turns < len(records) <= turns + PROBLEMS
        assert 1 <= sum(record.repeated for record in records) <= figures.workers


@pytest.mark.slow
def test_the_turns_are_as_real_ones_are(measured: tuple[OverheadFigures, Path]) -> None:
    _, folder = measured
    assert len(list((folder / "sample" / "kernels").iterdir())) >= PROBLEMS * SAMPLES
    assert not any(record.judged_with for record in read_turns(folder / "refine"))
    assert any(record.profile for record in read_turns(folder / "refine"))
    assert len({problem.hash for problem in load_suite(folder / "suite")}) == PROBLEMS


@pytest.mark.slow
def test_figures_are_told_and_read_back(measured: tuple[OverheadFigures, Path]) -> None:
    figures, _ = measured
    for run in (figures.sample, figures.refine):
        # The kernel brings the two figures up to date at different times.
        assert len(run.memory_mib) == 5 and max(run.memory_mib) <= run.peak_memory_mib + 1
        assert run.first_turn_after_kill_seconds > 0 and run.load_seconds > 0
        assert run.disk_mib > 0
    text = "\n".join(told(figures))
    assert "sample: 3 problems x 4 calls = 12 turns" in text and "refine: 3 problems" in text
    assert OverheadFigures.model_validate_json(figures.model_dump_json()) == figures


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not empty"):
        measure_overhead(1, 1, folder=tmp_path)
