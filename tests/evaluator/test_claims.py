"""Claimed speedups of a folder held against measured ones, and a command that goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.batch.adjudication import Adjudication, ClaimOutcome, JudgedClaim
from evaluator.batch.claim import Claim, read_claims
from evaluator.batch.eval_results import KernelName
from evaluator.batch.journal import journal_of
from evaluator.errors import DeviceError
from evaluator.evaluation import Evaluation
from evaluator.settings import Precision
from problems.errors import UsageError
from tests.command import ROOT, command
from tests.evaluator.batch.test_kernel_folder import RIGHT, TASK, WRONG, kernel
from tests.evaluator.made_evaluations import correct

CLOSE = RIGHT.replace("torch.relu(x)", "torch.relu(x) * 1.00005")
"""Within KernelBench's tolerance, and far from what fp32 gives."""

pytestmark = pytest.mark.usefixtures("own_locks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three kernels of one problem, with claims for two of them."""
    suite = tmp_path / "suite" / "level1"
    suite.mkdir(parents=True)
    (suite / "1_relu.py").write_text(TASK)
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for sample, source in enumerate((RIGHT, WRONG, CLOSE)):
        (kernels / kernel(1, 1, sample)).write_text(source)
    (tmp_path / "claims.csv").write_text(
        "level,task,sample,claimed_speedup_h100,note\n1,1,0,250x,a\n1,1,2,1.5,b\n"
    )
    return kernels


def words(folder: Path, *options: object) -> list[str]:
    parts = ["evaluator.check", folder, "--suite", folder.parent / "suite"]
    parts += ["--device", "cpu", "--timing-seconds", "0.2", "--no-audit", *options]
    return [*map(str, parts)]


def run(folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return command(*words(folder, *options))


@pytest.mark.thorough
def test_an_interrupted_folder_goes_on_and_ends_with_its_claims(folder: Path) -> None:
    # A shell starts what runs in the background with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = ["--claims", folder.parent / "claims.csv"]
    asked += ["--protocol", "refinery", "--protocol", "kernelbench"]
    with subprocess.Popen(
        [sys.executable, "-m", *words(folder, "--json", *asked)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None and first.stderr is not None
        before = json.loads(first.stdout.readline())
        first.send_signal(signal.SIGINT)
        assert "unfinished: the same command goes on from here" in first.stderr.read()
    unfinished = journal_of(folder / "eval_results.json")
    assert list(unfinished.glob("*.json"))

    done = run(folder, "--json", *asked)
    assert done.returncode == 1, done.stderr
    kept, *rest = done.stderr.splitlines()
    assert kept.endswith("verdicts are those of an interrupted command") and kept[0] != "0"
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found[0] == before, "what was judged before is not judged again"
    assert [(one["protocol"], one["status"]) for one in found] == [
        ("refinery", "correct"),
        ("refinery", "incorrect"),
        ("refinery", "incorrect"),
        ("kernelbench", "correct"),
        ("kernelbench", "incorrect"),
        ("kernelbench", "correct"),
    ]
    assert not unfinished.exists()

    assert "claims: 2 of 3 kernels have one; measured over eager" in rest
    whole = json.loads((folder / "adjudication.json").read_text())
    outcomes = [row["outcome"] for row in whole["kernels"]]
    # On a busy machine the calls may be too few for an interval with an upper end.
    words_of = {"less": "below the claim", "within": "with the claim in the interval"}
    assert outcomes[1:] == [None, "refused"]
    assert f"  1 {words_of[outcomes[0]]}, 1 refused" in rest
    assert any("geometric mean of 1: claimed 250x, measured " in line for line in rest)
    assert any(line.startswith("  refused: wrong_values") for line in rest)
    differs = rest.index("  KernelBench's verdict differs on 1 of 3")
    assert rest[differs + 1].startswith(
        f"    {kernel(1, 1, 2)}: correct by KernelBench, incorrect, wrong_values"
    )

    assert [row["claimed"] for row in whole["kernels"]] == [250.0, None, 1.5]
    assert [row["differs"] for row in whole["kernels"]] == [False, False, True]
    assert [row["under_kernelbench"]["status"] for row in whole["kernels"]] == [
        "correct",
        "incorrect",
        "correct",
    ]


def test_what_cannot_be_asked_is_said_before_anything_is_judged(folder: Path) -> None:
    def refused(says: str, *options: object) -> None:
        done = run(folder, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr.splitlines()[-1]

    refused("no column claimed", "--claims", folder / kernel(1, 1, 0))
    refused(
        "with --claims, kernelbench may be given",
        "--protocol",
        "refinery",
        "--protocol",
        "kernelbench",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("level,task\n1,2\n", "has no column claimed"),
        ("level,task,claimed\n1,x,2\n", "line 2: invalid literal"),
        ("level,task,claimed\n1,2,-1\n", "line 2: a speedup of -1"),
        ("level,task,claimed\n1,2,nan\n", "line 2: a speedup of nan"),
        ("level,task,claimed\n1,2,1\n1,2,3\n", "line 3: a second claim"),
        ("level,task,claimed\n1,2\n", "line 2: could not convert"),
    ],
)
def test_a_file_of_claims_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        read_claims(path)
    with pytest.raises(UsageError, match="can't be read"):
        read_claims(tmp_path / "missing.csv")


def test_columns_have_the_names_that_people_give_them(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text("\ufeffLevel,Problem,claimed_h100,KernelBench_0_2\n2,71,1.5x,mismatch\n")
    assert read_claims(path) == {KernelName(2, 71, 0): Claim(speedup=1.5, kernelbench="mismatch")}


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (correct(1.7, low=1.6, high=1.8), ClaimOutcome.MORE),
        (correct(1.45, low=1.4, high=1.5), ClaimOutcome.WITHIN),
        (correct(1.2, low=1.0, high=1.4), ClaimOutcome.LESS),
        (correct(9.5).model_copy(update={"findings": ("below the floor",)}), ClaimOutcome.NO_TIME),
        (DeviceError("it fell off the bus"), ClaimOutcome.NOT_JUDGED),
    ],
)
def test_a_claim_and_an_interval(outcome: Evaluation | DeviceError, word: ClaimOutcome) -> None:
    row = JudgedClaim(
        kernel="a.py",
        problem="1",
        level=1,
        claim=Claim(speedup=1.5, kernelbench="mismatch"),
        evaluation=outcome if isinstance(outcome, Evaluation) else None,
    )
    assert row.outcome is word
    assert row.differs == isinstance(outcome, Evaluation)
    lines = list(Adjudication([row], Precision.FP32, "refinery").lines())
    counted = word in (ClaimOutcome.MORE, ClaimOutcome.WITHIN, ClaimOutcome.LESS)
    assert any("geometric mean" in line for line in lines) == counted
