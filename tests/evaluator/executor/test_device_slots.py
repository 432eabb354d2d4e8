"""Who goes where: fairness, problems that are set up, judges in trouble, profilers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from evaluator.errors import JudgeDiedError, UnusableReferenceError
from evaluator.executor.device_slots import DeviceSlot, DeviceSlots, Rank
from evaluator.ipc.service import Service
from tests.waiting import once


@pytest.fixture
def judge() -> Iterator[Service]:
    """Never asked, so never started."""
    service = Service("no.such.module")
    yield service
    service.close()


def make(judge: Service, count: int) -> DeviceSlots:
    return DeviceSlots([DeviceSlot(f"cuda:{index}", judge) for index in range(count)])


def fail(slots: DeviceSlots, reference: str = "a") -> str:
    try:
        with slots.taken(reference) as slot:
            raise JudgeDiedError("gone")
    except JudgeDiedError:
        return slot.device


def work(slots: DeviceSlots, reference: str = "a") -> str:
    with slots.taken(reference) as slot:
        return slot.device


class Line:
    """Candidates that wait for a slot, each in a thread of its own, in a known order."""

    def __init__(self, slots: DeviceSlots) -> None:
        self.slots = slots
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def join(self, reference: str, rank: Rank = Rank.TURN) -> None:
        waiting = len(self.slots._waiting)

        def go() -> None:
            with self.slots.taken(reference, rank):
                self.order.append(reference)

        thread = threading.Thread(target=go)
        thread.start()
        self._threads.append(thread)
        once(lambda: len(self.slots._waiting) != waiting)

    def end(self) -> list[str]:
        for thread in self._threads:
            thread.join(30)
        return self.order


@contextmanager
def line_before_one_seat(slots: DeviceSlots, held: str) -> Iterator[Line]:
    line = Line(slots)
    with slots.taken(held):
        yield line
    line.end()


def test_the_one_whose_problem_is_set_up_goes_first(judge: Service) -> None:
    with line_before_one_seat(make(judge, 1), "a") as line:
        for reference in ("b", "a", "b", "a"):
            line.join(reference)
    assert line.order == ["a", "a", "b", "b"]


def test_nobody_is_passed_over_for_ever(judge: Service) -> None:
    with line_before_one_seat(make(judge, 1), "a") as line:
        for reference in ("b", "c", *["a"] * 20):
            line.join(reference)
    assert line.order[8:10] == ["b", "c"], "new problems wait at the same time"


def test_a_second_verdict_waits_for_turns_and_for_profilers(judge: Service) -> None:
    slots = make(judge, 1)
    with line_before_one_seat(slots, "a") as line:
        line.join("a", Rank.LATER)
        line.join("b")
        line.join("c")
    assert line.order == ["b", "c", "a"]
    with slots.for_profiler():
        line.join("a", Rank.LATER)
        assert work(slots, "d") == "cuda:0"
        assert len(line.order) == 3
    assert line.end()[3:] == ["a"]


def test_a_problem_goes_where_it_is_set_up_and_a_new_one_elsewhere(judge: Service) -> None:
    slots = make(judge, 4)
    found = [{work(slots, reference) for _ in range(3)} for reference in "abcd"]
    assert [len(devices) for devices in found] == [1] * 4
    assert len(set.union(*found)) == 4
    assert [{work(slots, reference)} for reference in "abcd"] == found


def test_what_a_judge_had_no_memory_for_is_no_reason_to_go_first(judge: Service) -> None:
    slots = make(judge, 1)
    (slot,) = slots
    for reference in ("b", "c"):
        work(slots, reference)
    with line_before_one_seat(slots, "a") as line:
        slot.forget_all_but(2)
        for reference in ("d", "b", "c", "a"):
            line.join(reference)
    assert line.order == ["c", "a", "d", "b"]


def test_a_judge_that_failed_waits_until_another_has_worked(judge: Service) -> None:
    slots = make(judge, 2)
    failed = fail(slots)
    with slots.taken("a") as busy:
        assert busy.device != failed
        line = Line(slots)
        line.join("b")
        assert line.order == []
    assert line.end() == ["b"]
    with slots.taken("a") as one, slots.taken("a") as other:
        assert failed in (one.device, other.device)


def test_a_judge_that_fails_again_and_again_gets_nothing_more(judge: Service) -> None:
    slots = make(judge, 2)
    for _ in range(3):
        with slots.taken("a") as sound:
            sick = fail(slots)
        assert sick != sound.device
    with slots.taken("a") as busy:
        assert busy is sound
        line = Line(slots)
        line.join("b")
        assert line.order == []
    assert line.end() == ["b"]
    assert work(slots, "c") == sound.device


def test_where_all_are_in_trouble_all_are_tried(judge: Service) -> None:
    slots = make(judge, 2)
    assert {fail(slots), fail(slots)} == {"cuda:0", "cuda:1"}
    for _ in range(10):
        fail(slots)
    with slots.taken("a") as first, slots.taken("a") as second:
        assert first is not second


def test_a_bad_reference_says_nothing_about_the_judge(judge: Service) -> None:
    slots = make(judge, 1)
    with pytest.raises(UnusableReferenceError), slots.taken("a"):
        raise UnusableReferenceError("dropout")
    (slot,) = slots
    assert (slot.failures, slot.on_trial) == (0, False)


def test_profilers_spread_over_the_devices(judge: Service) -> None:
    slots = make(judge, 4)
    one_by_one = []
    for _ in range(8):
        with slots.for_profiler() as device:
            one_by_one.append(device)
    assert sorted(one_by_one) == sorted([slot.device for slot in slots] * 2)
    with ExitStack() as stack:
        assert len({stack.enter_context(slots.for_profiler()) for _ in range(4)}) == 4


def test_profilers_go_where_nobody_is_judged_and_candidates_where_nobody_visits(
    judge: Service,
) -> None:
    slots = make(judge, 2)
    with slots.taken("a") as slot, slots.for_profiler() as device:
        assert device != slot.device
    with slots.for_profiler() as device, slots.taken("new") as slot:
        assert device != slot.device
