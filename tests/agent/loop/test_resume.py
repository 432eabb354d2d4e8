"""SIGKILL anywhere, the same command again: the record is that of a run nothing happened to."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.agent.stand_in import Diary

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab") / "experiments"
    command = [sys.executable, "-m", "tests.agent.crash_lab", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def records(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "run" / "turns.jsonl").read_text().splitlines()
    turns = [json.loads(line) for line in lines]
    for turn in turns:
        for name in ("created", "seconds", "repeated"):
            del turn[name]
    return sorted(turns, key=lambda turn: (turn["problem"], turn["sample"], turn["turn"]))


def repeated(folder: Path) -> int:
    lines = (folder / "run" / "turns.jsonl").read_text().splitlines()
    return sum(json.loads(line)["repeated"] for line in lines)


def done_again(folder: Path, wanted: str = "undisturbed") -> Counter[str]:
    """How many calls, evaluations and profiles were made beyond those of the undisturbed run."""
    again: Counter[str] = Counter()
    for what in ("model", "judge", "profile"):
        undisturbed = Diary(folder.parent / wanted / "diary.txt").count(what)
        again[what] = (Diary(folder / "diary.txt").count(what) - undisturbed).total()
    return again


def experiments(lab: Path, *names: str) -> list[Path]:
    found = [place for name in names for place in sorted(lab.glob(f"{name}-*"))]
    assert found, names
    return found


def test_the_undisturbed_run_is_worth_comparing_with(lab: Path) -> None:
    turns = records(lab / "undisturbed")
    assert [(turn["problem"], turn["turn"]) for turn in turns] == [
        (problem, turn) for problem in ("first", "second") for turn in range(3)
    ]
    statuses = {turn["evaluation"]["status"] for turn in turns}  # type: ignore[index]
    assert len(statuses) >= 2
    assert any(turn["profile"] for turn in turns)
    assert repeated(lab / "undisturbed") == 0


@pytest.mark.parametrize("name", ["event", "write", "in", "random", "often"])
def test_the_records_are_those_of_an_undisturbed_run(lab: Path, name: str) -> None:
    wanted = records(lab / "undisturbed")
    if name == "write":  # these have one problem only
        wanted = [turn for turn in wanted if turn["problem"] == "first"]
    for place in experiments(lab, name):
        assert records(place) == wanted, place.name


@pytest.mark.parametrize("name", ["sample", "hybrid"])
def test_samples_in_parallel_resume_as_well(lab: Path, name: str) -> None:
    wanted = records(lab / f"undisturbed-{name}")
    assert sorted(turn["call"] for turn in wanted) == list(range(len(wanted)))  # type: ignore[type-var]
    for place in experiments(lab, name):
        assert records(place) == wanted, place.name
        again = done_again(place, f"undisturbed-{name}")
        assert again.total() <= 4, (place.name, again)
        assert repeated(place) >= again.total(), place.name


def test_a_hybrid_keeps_the_same_drafts_whatever_happens(lab: Path) -> None:
    wanted = records(lab / "undisturbed-hybrid")
    refined = {turn["sample"] for turn in wanted if turn["turn"]}
    assert len(wanted) == 7
    assert len(refined) == 2
    for place in experiments(lab, "hybrid_event"):
        assert records(place) == wanted, place.name
        assert done_again(place, "undisturbed-hybrid").total() <= repeated(place) <= 1, place.name


def test_identical_kernels_are_judged_once_whatever_happens(lab: Path) -> None:
    wanted = records(lab / "undisturbed-deduplication")
    assert [turn["judged_with"] for turn in wanted] == ["", "first.0.0", "first.0.0"]
    assert [turn["profiled_with"] for turn in wanted] == ["", "first.0.0", "first.0.0"]
    for place in experiments(lab, "deduplication"):
        assert records(place) == wanted, place.name
        again = done_again(place, "undisturbed-deduplication")
        assert again.total() <= repeated(place) <= 1, (place.name, again)


def test_kills_were_tried_at_every_border(lab: Path) -> None:
    # Two problems of three turns: at least begin, answer, verdict and record of each.
    assert len(experiments(lab, "event")) > 2 * 3 * 4
    assert len(experiments(lab, "write")) > 3 * 6


def test_each_kill_repeats_at_most_what_was_in_flight(lab: Path) -> None:
    for place in experiments(lab, "event", "write", "in", "random"):
        again = done_again(place)
        assert again.total() <= 1, (place.name, again)
        # A kill between the mark and the work counts too: nobody can tell the two apart.
        assert again.total() <= repeated(place) <= 1, place.name
    for place in experiments(lab, "often"):
        assert done_again(place).total() <= repeated(place) <= 5


@pytest.mark.parametrize("what", ["model", "build", "judge", "profile"])
def test_work_killed_in_the_middle_is_repeated_and_counted(lab: Path, what: str) -> None:
    """What is built before the answer is whole costs its call alone."""
    for place in experiments(lab, f"in-{what}"):
        again = "model" if what == "build" else what
        assert done_again(place) == Counter({again: 1}), place.name
        assert repeated(place) == 1


def test_a_torn_last_line_costs_no_second_call(lab: Path) -> None:
    assert records(lab / "torn-line") == records(lab / "undisturbed")
    assert done_again(lab / "torn-line")["model"] == 0
    assert done_again(lab / "torn-line")["judge"] <= 1


def test_the_best_kernels_are_the_same_files(lab: Path) -> None:
    wanted = {path.name: path.read_text() for path in (lab / "undisturbed/run/best").iterdir()}
    for place in experiments(lab, "event", "random", "often"):
        best = {path.name: path.read_text() for path in (place / "run/best").iterdir()}
        assert best == wanted, place.name


def test_nothing_is_left_behind(lab: Path) -> None:
    for place in [path for path in lab.iterdir() if (path / "run" / "result.json").exists()]:
        left = [*(place / "run").rglob("*.tmp"), *(place / "run" / "pending").iterdir()]
        assert left == [], place.name
