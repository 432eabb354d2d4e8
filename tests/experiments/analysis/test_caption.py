from pathlib import Path

from experiments.plot_style import caption
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run


def test_it_says_how_many_what_and_by_whom(tmp_path: Path):
    made_run(tmp_path / "a", {"p": [2.0, None], "q": [1.0]})
    made_run(tmp_path / "b", {"p": [2.0, None], "q": [1.0]}, run_seed=1)
    told = caption(load_runs(tmp_path), "Dots: speedups.")
    assert told.startswith(
        "n = 2 problems, 1 to 2 calls each, 2 seeds. Dots: speedups. Kernels by "
    )
    assert "offline/tuner (rule-based kernel writer, not a language model); " in told
