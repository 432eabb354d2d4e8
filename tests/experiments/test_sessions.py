"""Sessions of coding agents beside runs."""

from pathlib import Path

import pytest

from experiments.comparison import compare_runs
from experiments.page.collection import collect
from experiments.page.sources import Sources
from experiments.study.cell import cells_of
from experiments.study.plan import Contrast
from experiments.study.study_folder import StudyFolder
from tests.command import command
from tests.experiments.made_runs import made_run, names
from tests.experiments.study.test_study_report import made_study

UNKNOWN = dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    refined = made_run(tmp_path / "refined", {"p": [1.5, 2.0, 2.5], "q": ["wrong", 1.1, 1.2]})
    session = made_run(
        tmp_path / "session",
        {"p": [1.5, 3.0], "q": [None, None, 1.4]},
        strategy="agent",
        model="agent/probe",
        usage=UNKNOWN | {"cost_usd": None},
    )
    return refined, session


def test_a_comparison_says_what_it_holds_equal(pair: tuple[Path, Path]) -> None:
    found = compare_runs(*pair)
    (equal,) = (note for note in found.notes if note.startswith("held equal"))
    assert equal.startswith("held equal: at most 3 evaluations a problem; device seconds a problem")
    assert "B: tokens are not known, and are not held equal" in found.notes
    assert any("B made 5 of 6 calls (the agent ended it)" in note for note in found.notes)
    assert "probe (a coding agent in a loop of its own)" in "".join(found.notes)
    assert {row.figure for row in found.rows if row.verdict == "unknown"} == {"tokens", "cost_usd"}


def test_a_report_shows_it_beside_a_run(pair: tuple[Path, Path], tmp_path: Path) -> None:
    said = command("experiments.report", *pair).stdout
    assert "agent G+E+P, agent/probe (a coding agent in a loop of its own)" in said
    assert "a session: its budget is 3 evaluations a problem; a run is comparable" in said
    collected = collect(Sources.at(pair))
    assert "agent/probe (a coding agent" in collected.page.model_dump_json()
    page = tmp_path / "report.html"
    assert command("experiments.report", *pair, "-o", page).returncode == 0


def test_a_study_reads_the_sessions_in_its_cells(tmp_path: Path) -> None:
    told = made_study(
        tmp_path / "study",
        {
            "refine G+E": {name: [1.2, 1.5] for name in names(9)},
            "agent G+E": {name: [1.2, 2.5] for name in names(9)},
        },
        [Contrast(a="refine G+E", b="agent G+E", outcome="speedup_kept")],
    )
    assert [each.condition for each in told.conditions] == ["refine G+E", "agent G+E"]
    assert told.answers[0].better == "agent G+E"
    record = StudyFolder(tmp_path / "study").record()
    assert record is not None
    plan = record.plan.model_copy(update={"settings": {"device": "cpu"}})
    assert [cell.name for cell in cells_of(plan, tmp_path)] == ["refine-g+e-tuner-s0"]
