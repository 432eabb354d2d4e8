"""A folder of kernels, judged on the CPU: what is reported, written, passed over, and unjudged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command import command
from tests.task import as_candidate, task

TASK = task("return torch.relu(x)", x="torch.randn(64, 513)")
UNUSABLE = TASK.replace("torch.relu(x)", "torch.relu(x).no_such_method()")
RIGHT = as_candidate(TASK)
WRONG = RIGHT.replace("torch.relu(x)", "torch.relu(x) * 1.5")
BROKEN = RIGHT.replace("class ModelNew(nn.Module):", "class ModelNew(")

pytestmark = pytest.mark.usefixtures("own_locks")


def judged(kernels: Path, suite: object, *options: object) -> subprocess.CompletedProcess[str]:
    words = ("--suite", suite, "--device", "cpu", "--timing-seconds", "0.2", "--no-audit")
    return command("evaluator.check", kernels, *words, *options)


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Of three problems; the reference of the second one raises."""
    return write(
        tmp_path / "suite",
        {"level1/1_relu.py": TASK, "level1/2_bad.py": UNUSABLE, "level2/1_relu.py": TASK},
    )


def kernel(level: int, number: int, sample: int) -> str:
    return f"level_{level}_problem_{number}_sample_{sample}_kernel.py"


@pytest.mark.thorough
def test_the_rest_is_judged_whatever_becomes_of_one(tmp_path: Path, suite: Path) -> None:
    files = {
        kernel(1, 1, 0): RIGHT,
        kernel(1, 1, 1): WRONG,
        kernel(1, 1, 2): RIGHT,
        kernel(1, 2, 0): RIGHT,
        kernel(1, 77, 0): RIGHT,
        kernel(2, 1, 0): BROKEN,
        kernel(2, 1, 10): RIGHT,
    }
    folder = write(tmp_path / "kernels", files)
    done = judged(folder, suite, "--json")
    assert done.returncode == 1, done.stderr

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["kernel"], one.get("status")) for one in found] == [
        (kernel(1, 1, 0), "correct"),
        (kernel(1, 1, 1), "incorrect"),
        (kernel(1, 1, 2), "correct"),
        (kernel(1, 2, 0), None),
        (kernel(2, 1, 0), "runtime_error"),
        (kernel(2, 1, 10), "correct"),
    ]
    assert found[2]["judged_with"] == kernel(1, 1, 0)
    assert set(found[3]) == {"kernel", "problem", "error"}
    assert found[3]["problem"] == "level1_2_bad"
    assert found[3]["error"].startswith("UnusableReferenceError: ")
    assert "no_such_method" in found[3]["error"]

    passed_over, *summary = done.stderr.splitlines()
    assert passed_over.startswith(f"{kernel(1, 77, 0)} is passed over: no problem '1/77' in suite")
    assert summary[0] == "3 of 6 kernels are correct; 1 cannot be judged"
    assert summary[1].startswith("fast_p over eager, of 5 kernels judged")
    assert summary[1].endswith("p = 0    p = 1  p = 1.5    p = 2")
    assert float(summary[2].split()[-4]) == float(summary[3].split()[-4]) == 0.6
    by_level = [folder / f"eval_results_level_{level}.json" for level in (1, 2)]
    assert summary[4:] == [f"results: {by_level[0]}, {by_level[1]}"]

    first = results(by_level[0])
    assert [(number, len(entries)) for number, entries in first.items()] == [("1", 3), ("2", 1)]
    right, wrong, twin = first["1"]
    assert [entry["sample_id"] for entry in first["1"]] == [0, 1, 2]
    assert right["runtime"] == found[0]["timing"]["latency_us"] / 1000 > 0
    assert twin["runtime"] == right["runtime"]
    assert (wrong["compiled"], wrong["correctness"], wrong["runtime"]) == (True, False, -1.0)
    assert wrong["metadata"]["reason"] == "wrong_values"
    (unjudged,) = first["2"]
    assert (unjudged["compiled"], unjudged["correctness"]) == (False, False)
    assert unjudged["metadata"]["status"] == "not_judged"
    assert unjudged["metadata"]["error"] == found[3]["error"]
    broken, last = results(by_level[1])["1"]
    assert (broken["compiled"], broken["sample_id"], last["sample_id"]) == (False, 0, 10)


def results(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Checks on the way that each entry has the keys of KernelBench's, with their types."""
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    for entry in (entry for entries in found.values() for entry in entries):
        assert {key: type(value) for key, value in entry.items()} == {
            "sample_id": int,
            "compiled": bool,
            "correctness": bool,
            "metadata": dict,
            "runtime": float,
            "runtime_stats": dict,
        }
    return found


def refused(done: subprocess.CompletedProcess[str], says: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_folder_where_no_file_fits(tmp_path: Path, suite: Path) -> None:
    refused(judged(write(tmp_path / "a", {"notes.txt": ""}), suite), "no file named like level_1_")
    done = judged(write(tmp_path / "b", {kernel(3, 1, 0): RIGHT}), suite)
    refused(done, "the suite has none of these problems")
    assert "is passed over" in done.stderr.splitlines()[0]


@pytest.mark.thorough
def test_where_results_go(tmp_path: Path, suite: Path) -> None:
    folder = write(tmp_path / "kernels", {kernel(1, 2, 0): RIGHT})
    refused(judged(folder, suite, "--results", tmp_path / "no" / "a.json"), "can't be written")
    refused(
        judged(folder / kernel(1, 2, 0), suite, "--problem", "1/2", "--results", tmp_path / "a"),
        "--results and --claims are for a folder",
    )
    ours = write(tmp_path, {"mine.json": '{"9": [{"metadata": {"judge": "kernel-refinery"}}]}'})
    assert judged(folder, suite, "--results", ours / "mine.json").returncode == 1
    assert list(results(ours / "mine.json")) == ["2"]
