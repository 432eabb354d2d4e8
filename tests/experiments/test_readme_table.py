from pathlib import Path

import pytest

from experiments.readme_table import BEGIN, END, ROOT, results_markdown
from tests.command import command, refused
from tests.experiments.made_runs import made_run, random_results

MODULE = "experiments.readme_table"
README, RESULTS = ROOT / "README.md", ROOT / "experiments" / "results"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name, gain, strategy in (("r", 2.0, "refine"), ("s", 1.0, "sample")):
        made_run(
            tmp_path / "results" / name,
            random_results(12, 4, gain=gain, seed=0),
            strategy=strategy,
            device="NVIDIA H200",
        )
    return tmp_path / "results"


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    file = tmp_path / "README.md"
    file.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    return file


@pytest.mark.thorough
def test_the_region_is_written_and_nothing_else(results: Path, readme: Path):
    words = ("--readme", readme, "--results", results)
    assert command(MODULE, *words, "--check").returncode == 1
    assert readme.read_text() == f"before\n{BEGIN}\n{END}\nafter\n"
    assert command(MODULE, *words).returncode == 0
    text = readme.read_text()
    assert text == f"before\n{BEGIN}\n{results_markdown(results)}\n{END}\nafter\n"
    assert command(MODULE, *words, "--check").returncode == 0
    readme.write_text(text.replace("12 of 12", "13 of 12"))
    assert command(MODULE, *words, "--check").returncode == 1


def test_the_table_tells_device_model_and_who_is_better(results: Path):
    text = results_markdown(results)
    assert text.startswith("**NVIDIA H200**")
    assert "rule-based kernel writer, not a language model" in text
    assert text.index("| sample |") < text.index("| refine G+E+P |")
    assert "refine G+E+P against sample, paired over 12 problems" in text


def test_runs_that_can_not_be_compared_say_why(results: Path):
    made_run(results / "t", {"p": [2.0] * 4}, device="NVIDIA H200", feedback="G")
    assert "not compared (" in results_markdown(results)


def test_devices_are_not_mixed(results: Path):
    made_run(results / "t", {"p": [2.0] * 4}, device="a CPU")
    text = results_markdown(results)
    assert text.count("best kernel over eager") == 2


def test_a_readme_without_marks_or_results_without_runs_are_refused(results: Path, tmp_path: Path):
    bare = tmp_path / "bare.md"
    bare.write_text("nothing here")
    assert "put both marks where the table goes" in refused(
        MODULE, "--readme", bare, "--results", results
    )
    assert "there is no" in refused(MODULE, "--readme", tmp_path / "no.md", "--results", results)


def test_our_own_readme_is_what_the_committed_results_say():
    if not any(RESULTS.glob("*/turns.jsonl*")):
        text = README.read_text() if README.is_file() else ""
        assert not text.partition(BEGIN)[2].partition(END)[0].strip(), "a table of no results"
        pytest.skip("no results are committed yet")
    done = command(MODULE, "--check")
    assert done.returncode == 0, done.stderr
