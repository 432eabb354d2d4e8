from pathlib import Path

import pytest

from experiments.analysis.trajectory import Trajectory
from experiments.trajectory_plots import kernel_times
from tests.experiments.made_runs import made_run
from tests.experiments.test_plots import texts

RUN = Path("experiments/recordings/relay-by-hand-h100.tar.xz")


def test_a_bar_is_as_long_as_its_kernels_and_names_them():
    trajectory = Trajectory.read(RUN, "level2_85_Conv2d_GroupNorm_Scale_MaxPool_Clamp")
    figure = kernel_times(trajectory)
    bars: dict[float, float] = {}
    for patch in figure.axes[0].patches:
        row = round(patch.get_y() + patch.get_height() / 2)
        bars[row] = bars.get(row, 0.0) + patch.get_width()
    # Row 0 is eager; the profile of turn 1 has two kernels of its own.
    assert bars[2] == pytest.approx(483.904 + 34.368)
    assert {"PyTorch eager", "turn 2", "torch.compile", "bound", "conv_k"} <= texts(figure)
    assert "5.16x [5.14, 5.17]" in texts(figure)
    assert "n = 1 problem, 3 turns." in " ".join(figure.get_supxlabel().split())


def test_turns_without_a_profile_or_a_time_are_shown_too(tmp_path: Path):
    made_run(tmp_path / "run", {"p": [None, 2.0, "wrong"]})
    figure = kernel_times(Trajectory.read(tmp_path / "run", "p"))
    assert {"build error", "incorrect", "turn 0", "turn 2"} <= texts(figure)
    assert not {"PyTorch eager", "bound"} & texts(figure)


def test_a_trajectory_without_any_time_can_be_drawn(tmp_path: Path):
    made_run(tmp_path / "run", {"p": [None, "wrong"]})
    kernel_times(Trajectory.read(tmp_path / "run", "p")).savefig(tmp_path / "p.png")
