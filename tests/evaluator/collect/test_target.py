from __future__ import annotations

import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.collect.collected import Collected
from evaluator.collect.target import program
from evaluator.collect.target.broker import Broker
from evaluator.collect.target.target import COLLECTED, REQUEST, Target
from evaluator.errors import ProfilerError
from tests.evaluator.processes import command_line, descendants, is_running, still_running
from tests.waiting import once

GATE = "gate"


@pytest.fixture
def folder(tmp_path: Path, place: Path) -> Path:
    """One with a request."""
    (tmp_path / REQUEST).write_text("the request")
    return tmp_path


def shell(script: str) -> Target:
    return Target("ncu", ["sh", "-c", script])


def sleepers(pid: int) -> int:
    """How many processes below `pid` sleep."""
    return sum("sleep" in command_line(each) for each in descendants(pid))


def collected(target: Target, folder: Path, timeout_s: float = 20) -> Collected:
    with Broker("cpu") as broker:
        return target.run(folder, broker, report="report", timeout_s=timeout_s)


def test_what_was_collected_comes_back_with_the_report(folder: Path) -> None:
    written = Collected(isolation=("a wall",)).model_dump_json()
    script = f"read since < {GATE}; cp {REQUEST} report; echo '{written}' > {COLLECTED}"
    with closing(shell(script)) as target:
        found = collected(target, folder)
    assert found.isolation == ("a wall",)
    assert found.seconds["process"] > 0
    assert (folder / "report").read_text() == "the request"


def test_the_request_is_not_there_before_it_is_handed_over(folder: Path) -> None:
    written = Collected().model_dump_json()
    # It is there once it is whole.
    script = f"ls > listed; mv listed before; read since < {GATE}; ls > after"
    script += f"; echo '{written}' > {COLLECTED}"
    with closing(shell(f"{script}; cat before after > report")) as target:
        once(lambda: list(Path(tempfile.gettempdir()).glob("*/before")))
        collected(target, folder)
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
        collected(target, folder)


def test_a_report_that_is_a_link_stays_where_it_is(folder: Path) -> None:
    written = Collected().model_dump_json()
    with closing(shell(f"ln -s {Path(__file__)} report; echo '{written}' > {COLLECTED}")) as target:
        collected(target, folder)
    # What reads it would follow it.
    assert not os.path.lexists(folder / "report")


def test_the_time_out_counts_from_the_handing_over_and_ends_the_group(
    folder: Path,
) -> None:
    with closing(shell("sleep 300 & sleep 300")) as target:
        once(lambda: sleepers(target.pid) >= 2)
        below = descendants(target.pid)
        apart = any("walled" in command_line(pid) for pid in below)
        assert target.waits
        with pytest.raises(ProfilerError, match=r"sh took longer than 0.5 s"):
            collected(target, folder, 0.5)
        # At once, where walls can tell: the device is given back next.
        assert not apart or not [pid for pid in below if is_running(pid)]
        assert not still_running({target.pid} | below)


def test_our_packages_are_found_behind_the_walls_though_they_are_not_installed(
    folder: Path,
) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "sys.meta_path = [f for f in sys.meta_path if f.__module__.startswith('_frozen')]; "
        "import problems, evaluator.collect.target.program as own; "
        "print(Path(own.__file__).resolve())"
    )
    with closing(Target("ncu", [sys.executable, "-c", code])) as target, Broker("cpu") as broker:
        said = target.watch(folder, broker, timeout_s=60)
    assert said.split() == [program.__file__]


def test_a_program_that_is_not_there_leaves_nothing(folder: Path) -> None:
    with (
        closing(Target("ncu", ["/no/such/program"])) as target,
        pytest.raises(
            ProfilerError, match=r"program ended with 127: /no/such/program: No such file"
        ),
    ):
        collected(target, folder)
