"""Several devices on one machine, with a stand-in for each judge and each builder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluator.errors import DeviceError, JudgeDiedError
from evaluator.evaluation import Backend, Evaluation
from evaluator.executor import builders, local
from evaluator.executor.builders import builders_for
from evaluator.executor.local import LocalExecutor
from tests.evaluator.executor.stand_in_builder import REFUSED
from tests.evaluator.made_requests import evaluation_request

DEVICES = ("cuda:0", "cuda:1", "cuda:3", "cuda:4")


@dataclass
class Lab:
    """An executor over stand-ins, and what they wrote down."""

    executor: LocalExecutor
    folder: Path
    pool: ThreadPoolExecutor

    def begin(
        self, source: str, reference: str = "a", backend: Backend = Backend.TRITON
    ) -> Future[Evaluation]:
        return self.pool.submit(self.executor.evaluate, request(source, reference, backend))

    def judge(
        self, sources: Sequence[str], reference: str = "a", backend: Backend = Backend.TRITON
    ) -> list[Evaluation]:
        begun = [self.begin(source, reference, backend) for source in sources]
        return [each.result() for each in begun]

    def diary(self, role: str = "judge") -> list[dict[str, Any]]:
        lines = (self.folder / "diary.jsonl").read_text().splitlines()
        return [entry for line in lines if (entry := json.loads(line))["role"] == role]


def request(source: str, reference: str = "a", backend: Backend = Backend.TRITON):
    kernel = f"ModelNew = '''\n{source}\n'''"
    return evaluation_request(kernel, reference, backend=backend, device="cuda:0")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(local, "builders_for", lambda devices, executors: 2)
    modules = "tests.evaluator.executor.stand_in_"
    with (
        LocalExecutor(
            *DEVICES, cache=tmp_path, judge=f"{modules}judge", builder=f"{modules}builder"
        ) as executor,
        ThreadPoolExecutor(40) as pool,
    ):
        yield Lab(executor, tmp_path, pool)


def judged_on(evaluation: Evaluation) -> str:
    return str(evaluation.conditions["judged_on"])


def overlapping(entries: Sequence[dict[str, Any]]) -> int:
    """The most entries that were under way at one instant."""
    steps = sorted([(e["begin"], 1) for e in entries] + [(e["end"], -1) for e in entries])
    now, most = 0, 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def test_no_more_judges_start_than_there_are_candidates_at_a_time(lab: Lab) -> None:
    lab.judge(["judge come alone"])
    lab.judge(["judge come alone"])
    assert set(lab.executor.judge_pids) == {DEVICES[0]}
    lab.judge(["judge meet two 2"] * 2)
    assert set(lab.executor.judge_pids) == set(DEVICES[:2])
    lab.executor.prepare(3)
    assert set(lab.executor.judge_pids) == set(DEVICES[:3])
    lab.executor.prepare(40)
    assert set(lab.executor.judge_pids) == set(DEVICES)


def test_builders_are_started_for_what_is_built_ahead(lab: Lab) -> None:
    first, second = lab.executor._builders.services
    lab.executor.prepare(2, Backend.TRITON)
    assert (first.pid, second.pid) == (None, None)
    lab.executor.prepare()
    assert first.pid is not None
    lab.judge(["judge come alone"], backend=Backend.CUDA)
    lab.judge(["judge meet two 2"] * 2)
    assert second.pid is None
    lab.executor.prepare(2)
    assert second.pid is not None


def test_how_many_problems_a_judge_has_kept_is_known(lab: Lab) -> None:
    for reference in "abcdefgh":
        lab.judge(["judge come alone"], reference)
    assert [len(slot.set_up) for slot in lab.executor._slots] == [1] * len(DEVICES)


def test_forty_candidates_keep_four_devices_busy(lab: Lab) -> None:
    lab.judge(["judge meet all 4"] * 4)  # all have started
    verdicts = lab.judge(["judge sleep 0.1"] * 40)
    entries = lab.diary()[4:]
    assert all(entry["asked_for"] == entry["device"] for entry in entries)
    assert Counter(entry["device"] for entry in entries) == Counter(map(judged_on, verdicts))
    assert all(verdict.conditions["threads"] == 1 for verdict in verdicts)
    assert lab.diary("build") == [], "what needs no compiler is not built ahead"
    assert len(entries) == 40
    for device in DEVICES:
        own = [entry for entry in entries if entry["device"] == device]
        assert overlapping(own) == 1
    assert overlapping(entries) == 4
    span = max(e["end"] for e in entries) - min(e["begin"] for e in entries)
    together = sum(e["end"] - e["begin"] for e in entries) / span
    assert together > 2.5, "devices at work, on average"


@pytest.mark.parametrize(("order", "error"), [("die", JudgeDiedError), ("no device", DeviceError)])
def test_a_judge_that_fails_hurts_no_other(lab: Lab, order: str, error: type[Exception]) -> None:
    doomed = lab.begin(f"judge meet all 4\njudge {order}")
    others = lab.judge(["judge meet all 4\njudge sleep 0.2"] * 3)
    with pytest.raises(error):
        doomed.result()
    assert len({judged_on(verdict) for verdict in others}) == 3
    # It is given work again once another judge has proved that the fault was not the machine's.
    assert {judged_on(verdict) for verdict in lab.judge(["judge meet again 4"] * 4)} == set(DEVICES)


def test_builds_go_on_while_devices_judge(lab: Lab) -> None:
    # It is judged until the next one's build has begun, and that waits for it to be judged.
    judged = lab.begin("judge come judging\njudge await building", backend=Backend.CUDA)
    built = lab.begin("build await judging\nbuild come building", backend=Backend.CUDA)
    assert judged.result().seconds.build == built.result().seconds.build == 2.0
    assert built.result().build is not None and not built.result().build.cached


def test_builds_overlap_and_their_number_is_bounded(lab: Lab) -> None:
    lab.judge(["build meet builders 2"] * 2, backend=Backend.CUDA)
    lab.judge(["build sleep 0.02"] * 10, backend=Backend.CUDA)
    assert overlapping(lab.diary("build")) == 2


def test_what_is_refused_while_it_is_built_never_takes_a_device(lab: Lab) -> None:
    (refused,) = lab.judge(["build refuse"], backend=Backend.CUDA)
    assert refused == REFUSED
    lab.judge(["build sleep 0"], backend=Backend.CUDA)
    assert ["build sleep 0" in entry["source"] for entry in lab.diary()] == [True]


def test_four_builders_a_device_and_some_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "usable_cores", lambda: 128)
    assert [builders_for(devices) for devices in (1, 4, 8)] == [6, 18, 34]
    assert [builders_for(1, executors) for executors in (8, 32)] == [6, 2], "a part of the cores"
    monkeypatch.setattr(builders, "usable_cores", lambda: 2)
    assert builders_for(8) == 1


def test_on_a_cpu_there_is_one_at_a_time_and_nothing_beside_it(tmp_path: Path) -> None:
    modules = "tests.evaluator.executor.stand_in_"
    with (
        LocalExecutor(
            "cpu", cache=tmp_path, judge=f"{modules}judge", builder=f"{modules}builder"
        ) as executor,
        ThreadPoolExecutor(4) as pool,
    ):
        lab = Lab(executor, tmp_path, pool)
        assert executor.width == 1
        lab.judge(["judge sleep 0.02"] * 6, backend=Backend.CPP)
        assert overlapping(lab.diary()) == 1
