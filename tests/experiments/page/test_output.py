"""The command that writes pages and figures."""

import html
from pathlib import Path

import pytest

from tests.command import ROOT, command, refused
from tests.experiments.made_runs import made_run, random_results

MODULE = "experiments.report"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made_run(tmp_path / "run", random_results(6, 3, gain=1.5, seed=0))


def test_a_page_is_one_file_without_addresses_of_elsewhere(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = command(MODULE, run, "-o", page)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{page}\n", "")
    text = html.unescape(page.read_text())
    assert "default-src 'none'" in text
    assert "http://" not in text and "https://" not in text


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["a run", "a study"])
def test_figures_are_written_as_pdf(run: Path, tmp_path: Path, source: str) -> None:
    study = ROOT / "experiments/recordings/profile-worth-cpu.tar.xz"
    path = study if source == "a study" else run
    done = command(MODULE, path, "--pdf-figures", tmp_path / "figures")
    assert (done.returncode, done.stderr) == (0, "")
    files = [Path(line) for line in done.stdout.splitlines()]
    names = [file.stem for file in files]
    assert names == ["budgets", "by-condition", "fast-p", "spending", "statuses-by-call"]
    assert all(file.read_bytes().startswith(b"%PDF") for file in files)


def test_mistakes_are_one_line(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    page = tmp_path / "page.html"
    assert "holds no turn yet" in refused(MODULE, tmp_path / "empty", "-o", page)
    assert "can't be written" in refused(MODULE, run, "-o", tmp_path / "no" / "page.html")
    for other in (("--live",), ("-o", page)):
        assert "exclude each other" in refused(MODULE, run, "--json", *other)
    assert not page.exists()
