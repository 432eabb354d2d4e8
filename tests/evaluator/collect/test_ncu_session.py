"""Real targets under a program that plays `ncu`: who ran a candidate, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from evaluator.collect.collected import Collected
from evaluator.collect.ncu import NcuSession, collect_ncu, ncu_command
from evaluator.collect.nsight.read_report import REPORT
from evaluator.collect.target.target import REQUEST, Target
from evaluator.errors import ProfilerError
from evaluator.hardware.device_lock import device_lock
from evaluator.judge.bounds import ceilings
from evaluator.judge.bounds.ceilings import measure_ceilings
from tests.evaluator.collect.stand_in_ncu import GPU, stand_in_ncu
from tests.evaluator.collect.target_requests import REFERENCE, request
from tests.evaluator.processes import descendants, is_running, still_running
from tests.waiting import once

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
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


def profiled(session: NcuSession, timeout_s: float = 60) -> Collected:
    """What was collected of a candidate that leaves word of itself."""
    source = f"from pathlib import Path\nimport torch\nPath('told').write_text('here')\n{MODULE}"
    with tempfile.TemporaryDirectory() as name:
        request(source, Path(name))
        found = collect_ncu(Path(name), GPU, timeout_s=timeout_s, session=session)
        assert (Path(name) / REPORT).read_text() == "here"
    return found


def prepared(session: NcuSession) -> int:
    """The process of a target that waits now."""
    session.prepare(ncu_command(GPU.name)[0], "cpu")
    return waiting(session)


def waiting(session: NcuSession) -> int:
    return session._waiting["cpu"].target.pid


def asleep_at_the_gate(pid: int) -> None:
    """Wait until the target below `pid` has imported all it needs and holds the gate open."""

    def waits(child: int) -> bool:
        with suppress(OSError):
            return any(fd.readlink().name == "gate" for fd in Path(f"/proc/{child}/fd").iterdir())
        return False

    once(lambda: any(map(waits, descendants(pid))))


def test_each_candidate_has_a_process_of_its_own_and_the_second_is_started_ahead(
    watched: list[int],
) -> None:
    with closing(NcuSession()) as session:
        first = profiled(session)
        ahead = waiting(session)
        assert watched != [ahead]
        asleep_at_the_gate(ahead)
        second = profiled(session)
        assert watched[1:] == [ahead]
        last = waiting(session)
        assert last != ahead
    assert not still_running([*watched, last])
    inside = {"start", "wait", "prepare", "build", "warm_up", "collect"}
    for found in (first, second):
        assert set(found.seconds) == inside | {"turn", "process", "import"}
        assert sum(found.seconds[name] for name in inside) <= found.seconds["process"]
        assert found.gpu is not None
        assert found.gpu.kernels[0].name == "gelu_k"
    assert second.work == first.work


def test_a_context_is_made_ahead_while_nobody_else_holds_the_device(watched: list[int]) -> None:
    with closing(NcuSession()) as session:
        with device_lock("cpu"):
            asleep_at_the_gate(prepared(session))
            ahead = session._waiting["cpu"]
            ahead._making.join(0.5)
            assert ahead._making.is_alive()
        ahead._making.join(30)
        assert (ahead.target._folder / "context").exists()
        profiled(session)
        assert watched == [ahead.target.pid]


@pytest.mark.slow
@pytest.mark.parametrize("why", ["it died", "it has other options"])
def test_a_target_that_does_not_fit_is_replaced(watched: list[int], why: str) -> None:
    with closing(NcuSession()) as session:
        if why == "it died":
            other = prepared(session)
            os.kill(other, signal.SIGKILL)
            assert not still_running([other])
        else:
            session.prepare(["sh", "-c", "sleep 300"], "cpu")
            other = waiting(session)
        profiled(session)
        assert not is_running(other)
        assert watched[-1] != other


def test_what_somebody_left_in_the_folder_of_a_target_is_not_followed(
    watched: list[int], place: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    with closing(NcuSession()) as session:
        prepared(session)
        (folder,) = place.glob("refinery-target-*")
        (folder / REQUEST).symlink_to(victim)
        with pytest.raises(ProfilerError, match="another process wrote"):
            profiled(session)
    assert victim.read_text() == "mine"


@contextmanager
def owner(place: Path, folder: Path) -> Iterator[int]:
    """Another process that owns the target of this process id, and is killed at the end."""
    code = (
        "import sys, tempfile\nfrom pathlib import Path\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "from evaluator.collect.target.broker import Broker\n"
        "from evaluator.collect.target.target import Target\n"
        "target = Target('ncu', sys.argv[3:])\n"
        "print(target.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "target.watch(Path(sys.argv[2]), Broker('cpu'), timeout_s=300)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(place), str(folder), *ncu_command(GPU.name)[0]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        pid = int(process.stdout.readline())
        if (folder / REQUEST).exists():
            process.stdin.write("\n")
            process.stdin.flush()
        yield pid
        below = descendants(pid)
        process.kill()
        process.wait()
        assert not still_running({pid} | below)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.usefixtures("watched")
def test_an_owner_that_is_killed_leaves_nothing(place: Path, tmp_path: Path, waits: bool) -> None:
    with owner(place, tmp_path) as pid:
        if waits:
            asleep_at_the_gate(pid)
    # The fixture sees to it that no folder is left either.


@pytest.mark.usefixtures("watched")
def test_an_owner_that_is_killed_while_its_candidate_runs_leaves_no_process(
    place: Path, tmp_path: Path
) -> None:
    request("open('runs', 'w')\nimport time\ntime.sleep(300)", tmp_path)
    with owner(place, tmp_path):
        once(lambda: list(place.glob("*/runs")))
