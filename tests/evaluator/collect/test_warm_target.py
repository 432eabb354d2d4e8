from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.collect.collected import Collected
from evaluator.collect.target_process import COLLECTED, REQUEST
from evaluator.collect.warm_target import WarmTarget, handed_over
from evaluator.errors import ProfilerError
from tests.evaluator.processes import still_running

GATE = "gate"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One with a request. What targets leave in the place for temporary files fails the test."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / REQUEST).write_text("the request")
    yield folder
    assert not list(place.iterdir())


def shell(script: str) -> WarmTarget:
    return WarmTarget(["sh", "-c", script])


def test_what_was_collected_comes_back_with_the_report(folder: Path) -> None:
    written = Collected(isolation=("a wall",)).model_dump_json()
    script = f"read since < {GATE}; cp {REQUEST} report; echo '{written}' > {COLLECTED}"
    with closing(shell(script)) as target:
        found = target.run(folder, report="report", timeout_s=20)
    assert found.isolation == ("a wall",)
    assert found.seconds["process"] > 0
    assert (folder / "report").read_text() == "the request"
    assert (folder / COLLECTED).is_file()


def test_the_request_is_not_there_before_it_is_handed_over(folder: Path) -> None:
    written = Collected().model_dump_json()
    # It is there once it is whole.
    script = f"ls > listed; mv listed before; read since < {GATE}; ls > after"
    script += f"; echo '{written}' > {COLLECTED}"
    with closing(shell(f"{script}; cat before after > report")) as target:
        while not list(Path(tempfile.gettempdir()).glob("*/before")):
            time.sleep(0.01)
        target.run(folder, report="report", timeout_s=20)
    listed = (folder / "report").read_text().split()
    assert listed.count(REQUEST) == 1


@pytest.mark.parametrize(
    "script",
    [
        f"ln -s {Path(__file__)} {COLLECTED}",
        f"mkfifo {COLLECTED}",
        f"mkdir {COLLECTED}",
        f"echo '{{}}{{}}' > {COLLECTED}",
        f"truncate -s 1G {COLLECTED}",
        "true",
    ],
)
def test_what_is_left_is_not_trusted(folder: Path, script: str) -> None:
    with closing(shell(script)) as target, pytest.raises(ProfilerError, match="left nothing"):
        target.run(folder, report="report", timeout_s=20)


def test_a_report_that_is_a_link_stays_one(folder: Path) -> None:
    written = Collected().model_dump_json()
    with closing(shell(f"ln -s {Path(__file__)} report; echo '{written}' > {COLLECTED}")) as target:
        target.run(folder, report="report", timeout_s=20)
    assert (folder / "report").is_symlink()


def test_the_time_out_counts_from_the_handing_over_and_ends_the_group(
    folder: Path, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    with closing(shell(f"sleep 300 & echo $! > {child}; wait")) as target:
        time.sleep(0.6)
        assert target.waits
        with pytest.raises(ProfilerError, match=r"sh took longer than 0.5 s"):
            target.run(folder, report="report", timeout_s=0.5)
        assert not still_running([int(child.read_text()), target.pid])


def test_closing_ends_one_that_waits(folder: Path) -> None:
    with closing(shell(f"sleep 300 & read since < {GATE}")) as target:
        assert target.waits
    assert not still_running([target.pid])


def test_a_program_that_is_not_there_leaves_nothing(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        WarmTarget(["/no/such/program"])


def test_waiting_until_the_request_is_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / GATE)
    gate = os.open(tmp_path / GATE, os.O_RDWR)
    said: list[float | None] = []
    waiting = threading.Thread(target=lambda: said.append(handed_over(tmp_path)))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    os.write(gate, b"12.5\n")
    waiting.join(20)
    os.close(gate)
    assert said == [12.5]
    assert not (tmp_path / GATE).exists()


def test_an_owner_that_goes_while_it_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / GATE)
    gate = os.open(tmp_path / GATE, os.O_RDWR)
    said: list[float | None] = []
    waiting = threading.Thread(target=lambda: said.append(handed_over(tmp_path)))
    waiting.start()
    waiting.join(0.2)
    os.close(gate)
    waiting.join(20)
    assert said == [None]
    assert not tmp_path.exists()


def test_an_owner_that_went_before(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / GATE)
    assert handed_over(tmp_path) is None
    assert not tmp_path.exists()
    assert handed_over(tmp_path) is None
