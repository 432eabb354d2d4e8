"""A folder of kernels that somebody else has filled: links, pipes, devices, odd names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.batch.adjudication import WHOLE, Adjudication, JudgedClaim, is_ours
from evaluator.batch.claim import read_claims
from evaluator.batch.eval_results import EvalResults, KernelName, refuse_foreign
from evaluator.batch.kernel_folder import kernels_in
from evaluator.errors import DeviceError
from evaluator.settings import Precision
from problems.errors import UndecodableError, UsageError
from problems.source_file import MOST_BYTES, read_source
from tests.evaluator.batch.test_kernel_folder import RIGHT, TASK, kernel, write

NAME = KernelName(1, 1, 0)
SECRET = "password = hunter2\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.py"
    path.write_text(SECRET)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / kernel(1, 1, 0)).write_text(RIGHT)
    return folder


ODD: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a link": (lambda path, secret: path.symlink_to(secret), "it is a link"),
    "a dangling link": (lambda path, secret: path.symlink_to("nowhere"), "it is a link"),
    "a link to a device": (lambda path, secret: path.symlink_to("/dev/zero"), "it is a link"),
    "a link to itself": (lambda path, secret: path.symlink_to(path.name), "it is a link"),
    "a pipe": (lambda path, secret: os.mkfifo(path), "it is no plain file"),
    "a folder": (lambda path, secret: path.mkdir(), "it is no plain file"),
    "too large": (
        lambda path, secret: (path.touch(), os.truncate(path, 2**40)),
        "bytes",
    ),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_entry_gets_a_line_and_the_others_are_judged(
    kind: str, folder: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, says = ODD[kind]
    make(folder / kernel(1, 1, 1), secret)
    assert [found.name for found in kernels_in(folder, None)] == [NAME]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"'{kernel(1, 1, 1)}' is passed over: ")
    assert says in line


@pytest.mark.parametrize(
    "number", ["01", "00", "\N{ARABIC-INDIC DIGIT ONE}", "\N{FULLWIDTH DIGIT ONE}", "1\x1b[2J"]
)
def test_a_kernel_has_one_name(
    number: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in range(3):
        numbers = ["1", "1", "0"]
        numbers[place] = number
        name = "level_{}_problem_{}_sample_{}_kernel.py".format(*numbers)
        (folder / name).write_text(RIGHT)
    (folder / f"{kernel(1, 1, 1)}\n").write_text(RIGHT)
    assert [found.name for found in kernels_in(folder, None)] == [NAME]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all("is passed over: its name is not like" in line for line in lines)
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("kind", [*ODD, "nested", "of no entries", "theirs", "no text"])
def test_what_stands_where_results_go_is_refused(kind: str, folder: Path, secret: Path) -> None:
    place = folder / "eval_results.json"
    texts = {
        "nested": '{"1":' + "[" * 100_000,
        "of no entries": '{"mine": ""}',
        "theirs": '{"1": [{"sample_id": 0, "metadata": {"hardware": "L40S"}}]}',
        "no text": b"\xff".decode("latin1"),
    }
    if kind in texts:
        place.write_text(texts[kind], encoding="latin1")
    else:
        ODD[kind][0](place, secret)
    before = os.lstat(place)
    with pytest.raises(UsageError, match="choose another place"):
        EvalResults(place, {1})
    assert (os.lstat(place), secret.read_text()) == (before, SECRET)


def test_no_link_is_followed_when_results_are_written(folder: Path, secret: Path) -> None:
    """Neither a link that was there, nor one that came while the kernels were judged."""
    place = folder / "eval_results.json"
    for name in ("eval_results.json.part", ".eval_results.json.part"):
        (folder / name).symlink_to(secret)
    results = EvalResults(place, {1})
    for path in (place, folder / WHOLE):
        path.symlink_to(secret)
    before = set(folder.iterdir())
    results.write([(NAME, "level1_1_relu", DeviceError("gone"))])
    odd = JudgedClaim(kernel="", problem="", level=1, claim=None, evaluation=None, error="\x1b[2J")
    Adjudication([odd], Precision.FP32, "refinery").write(folder)
    assert "\x1b" not in (folder / WHOLE).read_text()
    assert secret.read_text() == SECRET
    assert set(folder.iterdir()) == before
    assert json.loads(place.read_text())["1"][0]["metadata"]["status"] == "not_judged"
    assert place.stat().st_mode & 0o777 == 0o666 & ~_umask()
    refuse_foreign(folder / WHOLE, is_ours)
    (folder / WHOLE).unlink()
    (folder / WHOLE).mkdir()
    with pytest.raises(UsageError, match="can't be written: Is a directory"):
        Adjudication([], Precision.FP32, "refinery").write(folder)


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


def test_a_file_of_another_program_is_left_alone(folder: Path) -> None:
    (folder / WHOLE).write_text("{}\n")
    with pytest.raises(UsageError, match="holds results of another program"):
        refuse_foreign(folder / WHOLE, is_ours)


def test_a_verdict_in_a_file_of_claims_moves_no_cursor(folder: Path) -> None:
    (folder / "claims.csv").write_text("level,task,claimed,kernelbench\n1,1,2,\x1b[2Jwrong\n")
    assert read_claims(folder / "claims.csv")[NAME].kernelbench == "[2Jwrong"


def test_a_folder_that_cannot_be_listed(folder: Path) -> None:
    with pytest.raises(UsageError, match="can't be listed: No such file"):
        kernels_in(folder / "gone", None)


@pytest.mark.parametrize("kind", ODD)
def test_claims_and_kept_verdicts_are_plain_files(kind: str, folder: Path, secret: Path) -> None:
    make, says = ODD[kind]
    make(folder / "claims.csv", secret)
    with pytest.raises(UsageError, match=says):
        read_claims(folder / "claims.csv")
    assert secret.read_text() == SECRET


def test_a_user_may_name_a_link_and_no_pipe(folder: Path, secret: Path) -> None:
    link = folder / "link.py"
    link.symlink_to(secret)
    assert read_source(link) == SECRET
    with pytest.raises(UsageError, match="it is a link"):
        read_source(link, follows=False)
    os.mkfifo(folder / "pipe.py")
    with pytest.raises(UsageError, match="no plain file"):
        read_source(folder / "pipe.py")


@pytest.mark.parametrize("kind", ["a pipe", "a link to itself", "nested", "twice"])
def test_an_odd_task_costs_its_own_kernels_alone(
    kind: str, folder: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = {
        "twice": {"2_a.py": TASK, "2_b.py": TASK},
        "nested": {"2_\x1b.py": TASK + f"x = {'-' * 10**6}1"},
    }
    suite = write(folder.parent / "suite/level1", {"1_a.py": TASK, **odd.get(kind, {})})
    if kind in ODD:
        ODD[kind][0](suite / "2_\x1b.py", secret)
    (folder / kernel(1, 2, 0)).write_text(RIGHT)
    assert [found.name for found in kernels_in(folder, suite.parent)] == [NAME]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{kernel(1, 2, 0)} is passed over: ")
    assert "\x1b" not in line


def test_a_file_that_grows_has_a_bound(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = secret.stat()
    monkeypatch.setattr(os, "fstat", lambda _: before)
    secret.write_text("x" * (MOST_BYTES + 9))
    assert len(read_source(secret)) == MOST_BYTES


@pytest.mark.parametrize("codec", ["punycode", "idna", "nonsense"])
def test_a_slow_encoding_is_none(codec: str, folder: Path) -> None:
    path = folder / kernel(1, 1, 1)
    path.write_bytes(f"# coding: {codec}\n-".encode() + b"b" * (MOST_BYTES // 2))
    with pytest.raises(UndecodableError, match=f"{codec}.*declare its encoding"):
        read_source(path)
