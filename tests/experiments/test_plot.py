"""A picture as a file, from the shell."""

from pathlib import Path

import pytest

from evaluator.command.command_line import serve
from experiments.plot import Picture, app
from tests.experiments.made_runs import made_run, random_results

ONE = (Picture.TRAJECTORIES, Picture.STATUSES, Picture.KERNELS)
RECORDED = {Picture.BUDGETS, Picture.ADVICE}
"""Pictures of what made runs do not have."""
STUDY = "experiments/recordings/profile-worth-cpu"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        made_run(folder / "a", random_results(7, 5, gain=1.8, seed=1)),
        made_run(folder / "b", random_results(7, 5, gain=1.0, seed=2), strategy="sample"),
    ]


@pytest.mark.parametrize("picture", Picture)
def test_every_picture_is_drawn(picture: Picture, runs: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    given = [STUDY] if picture in RECORDED else runs[:1] if picture in ONE else runs
    problem = ["--problem", "level1_1_problem"] if picture is Picture.KERNELS else []
    assert serve(app, "plot", [picture, *map(str, given), *problem, "-o", str(file)]) == 0
    assert "<svg" in file.read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["by-call", "{a}", "-o", "picture.txt"], "ends in .svg"),
        (["by-call", "nowhere", "-o", "p.svg"], "there is no folder"),
        (["paired", "{a}", "-o", "p.svg"], "takes 2 runs, and 1 are there"),
        (["trajectories", "{a}", "{b}", "-o", "p.svg"], "takes 1 run, and 2 are there"),
        (["by-call", "{a}", "-o", "no/folder/p.svg"], "can't be written"),
        (["by-call", "{a}", "--problem", "p0", "-o", "p.svg"], "goes with kernels"),
        (["kernels", "{a}", "-o", "p.svg"], "--problem ID"),
        (["kernels", "{a}", "--problem", "p99", "-o", "p.svg"], "has no turn of p99"),
        (["budgets", "{a}", "-o", "p.svg"], "is no study"),
        (["budgets", "{a}", "{b}", "-o", "p.svg"], "takes 1 study"),
        (["by-call", "{a}", "--condition", "sample", "-o", "p.svg"], "goes with budgets"),
        (["budgets", STUDY, "--condition", "some", "-o", "p.svg"], "no condition 'some'"),
        (["advice", "{a}", "-o", "p.svg"], "no advice was followed"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], reason: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.format(a=runs[0], b=runs[1]) for word in words]
    assert serve(app, "plot", given) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count("\n") == 1
