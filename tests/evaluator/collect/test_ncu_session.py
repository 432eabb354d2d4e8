"""Real targets under a program that plays `ncu`: who ran a candidate, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evaluator.collect.collected import Collected
from evaluator.collect.ncu import collect_ncu, ncu_command
from evaluator.collect.ncu_session import NcuSession
from evaluator.collect.nsight.read_report import REPORT
from evaluator.collect.target.target import Target
from evaluator.collect.target.target_request import REQUEST
from evaluator.errors import ProfilerError
from evaluator.hardware.devices import DeviceInfo
from evaluator.judge.bounds import ceilings
from evaluator.judge.bounds.ceilings import measure_ceilings
from tests.evaluator.collect.stand_in_ncu import GPU, stand_in_ncu
from tests.evaluator.collect.target_requests import REFERENCE, request
from tests.evaluator.processes import descendants, is_running, still_running

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
HEAD = "import os, torch\nfrom pathlib import Path\n"
MODULE = REFERENCE.replace("class Model(", "class ModelNew(")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One in which the device has been measured, as a judge leaves it."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_REFINERY_CACHE", str(cache))
        patch.setattr(ceilings, "_SECONDS", 0.0)
        measure_ceilings("cpu", threads=1)
    return cache


@pytest.fixture
def watched(place: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes, by their first ones, that a candidate was handed over to."""
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(cache))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    stand_in_ncu(tmp_path / "bin", tmp_path / "log")
    pids: list[int] = []
    watch = Target.watch

    def noted(target: Target, *given: Any, **options: Any) -> str:
        pids.append(target.pid)
        return watch(target, *given, **options)

    monkeypatch.setattr(Target, "watch", noted)
    return pids


def profiled(
    session: NcuSession | None = None,
    first: str = "",
    *,
    device: DeviceInfo = GPU,
    timeout_s: float = 60,
) -> Collected:
    """What was collected of a candidate that leaves word of itself."""
    source = f"{HEAD}{first}\nPath('told').write_text('here')\n{MODULE}"
    with tempfile.TemporaryDirectory() as name:
        request(source, Path(name))
        found = collect_ncu(Path(name), device, timeout_s=timeout_s, session=session)
        assert (Path(name) / REPORT).read_text() == "here"
    return found


def spare_of(session: NcuSession) -> int:
    assert session.spare_pid is not None
    return session.spare_pid


def asleep_at_the_gate(pid: int) -> None:
    """Wait until the target below `pid` has imported all it needs and holds the gate open."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for child in descendants(pid):
            try:
                opened = [fd.readlink().name for fd in Path(f"/proc/{child}/fd").iterdir()]
            except OSError:
                continue
            if "gate" in opened:
                return
        time.sleep(0.05)
    raise AssertionError("the spare never waited")


def test_each_candidate_has_a_process_of_its_own_and_the_second_one_had_the_spare(
    watched: list[int],
) -> None:
    with closing(NcuSession()) as session:
        first = profiled(session)
        spare = spare_of(session)
        assert watched != [spare]
        asleep_at_the_gate(spare)
        second = profiled(session)
        assert watched[1:] == [spare]
        last = spare_of(session)
        assert last != spare
    assert not still_running([*watched, last])
    stages = {
        "turn",
        "start",
        "wait",
        "prepare",
        "build",
        "warm_up",
        "collect",
        "process",
        "import",
    }
    for found in (first, second):
        assert set(found.seconds) == stages
        inside = sum(found.seconds[name] for name in stages - {"turn", "process", "import"})
        assert inside <= found.seconds["process"]
        assert found.gpu is not None
        assert found.gpu.kernels[0].name == "gelu_k"
    assert second.work == first.work


def test_with_several_devices_several_profiles_find_a_spare(watched: list[int]) -> None:
    command = ncu_command(GPU.name)[0]
    with closing(NcuSession(2)) as session:
        for _ in range(3):
            session.prepare(command)
        first, second = session.take(command), session.take(command)
        assert first is not None
        assert second is not None
        assert session.take(command) is None
        session.prepare(command)
        third = spare_of(session)
        pids = [first.pid, second.pid]
        assert len({*pids, third}) == 3
        first.close()
        second.close()
        assert is_running(third)
    assert not still_running([*pids, third])


def test_one_profile_alone_starts_no_spare(watched: list[int]) -> None:
    profiled()
    assert not still_running(watched)
    assert len(watched) == 1


@pytest.mark.slow
def test_a_dead_spare_is_replaced(watched: list[int]) -> None:
    with closing(NcuSession()) as session:
        session.prepare(ncu_command(GPU.name)[0])
        spare = spare_of(session)
        os.kill(spare, signal.SIGKILL)
        assert not still_running([spare])
        profiled(session)
        assert watched[-1] != spare


def test_what_somebody_left_in_the_folder_of_a_spare_is_not_followed(
    watched: list[int], place: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    with closing(NcuSession()) as session:
        session.prepare(ncu_command(GPU.name)[0])
        spare = spare_of(session)
        (folder,) = place.glob("refinery-target-*")
        (folder / REQUEST).symlink_to(victim)
        profiled(session)
        assert watched[-1] != spare
    assert victim.read_text() == "mine"


@pytest.mark.slow
def test_a_candidate_that_breaks_the_spare_gets_a_fresh_process_once(
    watched: list[int], place: Path
) -> None:
    once = "if Path('doomed').exists():\n    os._exit(3)\n"
    with closing(NcuSession()) as session:
        session.prepare(ncu_command(GPU.name)[0])
        spare = spare_of(session)
        (folder,) = place.glob("refinery-target-*")
        (folder / "doomed").touch()
        profiled(session, once)
        assert len(watched) == 2
        assert watched[-1] != spare
        # And one that always breaks gets no third, and no spare for another one.
        with pytest.raises(ProfilerError, match="ended with 3"):
            profiled(session, "os._exit(3)")
        assert len(watched) == 4
        assert session.spare_pid is None


@pytest.mark.slow
def test_a_spare_with_other_options_is_dropped(watched: list[int]) -> None:
    with closing(NcuSession()) as session:
        session.prepare(["sh", "-c", "sleep 300"])
        other = spare_of(session)
        profiled(session)
        assert not is_running(other)
        assert watched[-1] != other


def test_a_spare_that_takes_too_long_is_not_followed_by_another(
    watched: list[int], tmp_path: Path
) -> None:
    stand_in_ncu(tmp_path / "bin", tmp_path / "log", "sleep 300")
    with closing(NcuSession()) as session:
        session.prepare(ncu_command(GPU.name)[0])
        spare = spare_of(session)
        with pytest.raises(ProfilerError, match=r"ncu took longer than 0.5 s"):
            profiled(session, timeout_s=0.5)
        assert not still_running([spare])
    assert watched == [spare]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.usefixtures("watched")
def test_an_owner_that_is_killed_leaves_nothing(place: Path, waits: bool) -> None:
    code = (
        "import sys, time, tempfile\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "from evaluator.collect.ncu_session import NcuSession\n"
        "session = NcuSession()\n"
        "session.prepare(sys.argv[2:])\n"
        "print(session.spare_pid, flush=True)\n"
        "time.sleep(300)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(place), *ncu_command(GPU.name)[0]],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert owner.stdout is not None
    spare = int(owner.stdout.readline())
    if waits:
        asleep_at_the_gate(spare)
    below = descendants(spare)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert not still_running({spare} | below)
    # The fixture sees to it that no folder is left either.


@pytest.mark.usefixtures("watched")
def test_an_owner_that_is_killed_while_its_candidate_runs_leaves_no_process(place: Path) -> None:
    code = (
        "import sys, tempfile\nfrom pathlib import Path\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "from evaluator.collect.target.broker import Broker\n"
        "from evaluator.collect.target.target import Target\n"
        "target = Target('ncu', sys.argv[3:])\n"
        "print(target.pid, flush=True)\n"
        "target.watch(Path(sys.argv[2]), Broker('cpu'), timeout_s=300)\n"
    )
    folder = place / "request"
    folder.mkdir()
    request("open('runs', 'w')\nimport time\ntime.sleep(300)", folder)
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(place), str(folder), *ncu_command(GPU.name)[0]],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert owner.stdout is not None
    first = int(owner.stdout.readline())
    end = time.monotonic() + 60
    while not list(place.glob("*/runs")):
        assert time.monotonic() < end
        time.sleep(0.05)
    below = descendants(first)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert not still_running({first} | below)
    (folder / REQUEST).unlink()
    folder.rmdir()
