"""A picture as a file, from the shell."""

from pathlib import Path

import pytest

from evaluator.command.command_line import serve
from experiments.plot import OF_ANY_RUNS, Picture, app
from tests.experiments.made_runs import made_run, random_results

STUDY = "experiments/recordings/profile-worth-cpu.tar.xz"


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
    given = runs if picture in OF_ANY_RUNS else runs[:1]
    problem = ["--problem", "level1_1_problem"] if picture is Picture.KERNELS else []
    assert serve(app, "plot", [picture, *map(str, given), *problem, "-o", str(file)]) == 0
    assert "<svg" in file.read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["fast-p", "{a}", "-o", "picture.txt"], "ends in .svg"),
        (["fast-p", "nowhere", "-o", "p.svg"], "there is no folder"),
        (["trajectories", "{a}", "{b}", "-o", "p.svg"], "takes 1 run, and 2 are there"),
        (["fast-p", "{a}", "-o", "no/folder/p.svg"], "can't be written"),
        (["fast-p", "{a}", "--problem", "p0", "-o", "p.svg"], "goes with kernels"),
        (["kernels", "{a}", "-o", "p.svg"], "--problem ID"),
        (["kernels", "{a}", "--problem", "p99", "-o", "p.svg"], "has no turn of p99"),
        (["fast-p", "{a}", "--condition", "sample", "-o", "p.svg"], "goes with budgets"),
        (["budgets", STUDY, "--condition", "some", "-o", "p.svg"], "no condition 'some'"),
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
