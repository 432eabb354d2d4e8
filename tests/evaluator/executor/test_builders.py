"""Builds that begin before anybody waits for them, by a stand-in for the process that builds."""

import json
import threading
import time
from pathlib import Path

import pytest

from evaluator.evaluation import Backend, EvaluationRequest
from evaluator.executor.builders import Builders
from evaluator.hardware.device_lock import device_lock, device_lock_if_free
from tests.evaluator.executor.stand_in_builder import BUILT
from tests.evaluator.executor.stand_in_service import MEETING_S
from tests.evaluator.made_requests import evaluation_request
from tests.waiting import once


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_LOCKS", str(tmp_path))


@pytest.fixture
def make(tmp_path: Path):
    made: list[Builders] = []

    def made_for(device: str, number: int = 1) -> Builders:
        module = "tests.evaluator.executor.stand_in_builder"
        made.append(Builders(module, device, tmp_path, number))
        return made[-1]

    yield made_for
    for builders in made:
        builders.close()


def request(source: str) -> EvaluationRequest:
    return evaluation_request(source, backend=Backend.CUDA, device="cuda:0")


def built(folder: Path) -> list[str]:
    diary = folder / "diary.jsonl"
    lines = diary.read_text().splitlines() if diary.exists() else []
    return [json.loads(line)["source"] for line in lines]


def come(folder: Path, name: str) -> None:
    (folder / f"meeting-{name}").mkdir()
    (folder / f"meeting-{name}" / "test").touch()


def test_a_build_waits_for_the_early_one_of_the_same_candidate(make, tmp_path: Path) -> None:
    builders = make("cuda:0", number=2)
    wanted = request("build come early\nbuild await go")
    builders.begin(wanted)
    builders.begin(wanted)  # once is enough
    found = []
    waiting = threading.Thread(target=lambda: found.append(builders.build(wanted)))
    waiting.start()
    assert builders.build(request("build await early")) == BUILT, "others are not kept waiting"
    assert not found
    come(tmp_path, "go")
    waiting.join()
    assert found == [BUILT]
    # The early one, and the one that finds all in the cache.
    assert built(tmp_path).count(wanted.candidate.source) == 2


def test_an_early_build_that_has_not_begun_is_not_waited_for(make, tmp_path: Path) -> None:
    builders = make("cuda:0")
    builders.begin(request("build await go"))
    queued = request("build come queued")
    builders.begin(queued)
    found = []
    waiting = threading.Thread(target=lambda: found.append(builders.build(queued)))
    waiting.start()
    come(tmp_path, "go")
    waiting.join()
    assert found == [BUILT]
    assert built(tmp_path).count(queued.candidate.source) == 1


@pytest.mark.parametrize("failure", ["die", "no device"])
def test_a_failure_is_told_to_who_waits_and_to_nobody_before(make, tmp_path, failure) -> None:
    builders = make("cuda:0")
    builders.begin(request(f"build {failure}"))
    assert builders.build(request("build come after")) == BUILT


def test_nothing_is_built_early_beside_a_measurement_on_the_cpu(make, tmp_path: Path) -> None:
    builders = make("cpu")
    with device_lock("cpu"):
        builders.begin(request("beside"))
        builders.close()  # the early builds have ended then
    assert built(tmp_path) == []


def test_nothing_is_measured_on_the_cpu_beside_an_early_build(make, tmp_path: Path) -> None:
    builders = make("cpu")
    builders.begin(request("build come under-way\nbuild await go"))
    once((tmp_path / "meeting-under-way").exists)
    with device_lock_if_free("cpu") as free:
        assert not free
    come(tmp_path, "go")
    with device_lock("cpu"):
        assert len(built(tmp_path)) == 1


def test_closing_waits_for_no_early_build(make, tmp_path: Path) -> None:
    builders = make("cuda:0")
    builders.begin(request("build come begun\nbuild await never"))
    builders.begin(request("build come queued"))
    once((tmp_path / "meeting-begun").exists)
    begin = time.monotonic()
    builders.close()
    assert time.monotonic() - begin < MEETING_S / 2
    assert built(tmp_path) == []
