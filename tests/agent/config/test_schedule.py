"""Which calls a problem gets and in which order, whatever ends a run in between."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.run_config import RunConfig
from agent.config.schedule import Place, Schedule, call_seed, schedule_of


def run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"output": Path("x"), **settings})


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Schedule, tuple[int, ...]]:
    """A schedule, and the drafts that turn out to be the best."""
    budget = draw(st.integers(1, 30))
    drafts = draw(st.integers(1, budget))
    refined = draw(st.integers(1, drafts))
    kept = draw(st.permutations(range(drafts)))[:refined]
    return Schedule(drafts, refined, budget), tuple(kept)


def known(schedule: Schedule, recorded: set[Place], kept: tuple[int, ...]) -> tuple[int, ...]:
    """What is known of the drafts that are kept: nothing while one is missing."""
    return kept if all((n, 0) in recorded for n in range(schedule.drafts)) else ()


def one_by_one(
    schedule: Schedule, kept: tuple[int, ...], recorded: set[Place] | None = None
) -> list[Place]:
    """The turns that follow `recorded`, each recorded before the next one begins."""
    done, following = set(recorded or ()), []
    while ready := list(schedule.ready(done, known(schedule, done, kept))):
        following.append(ready[0])
        done.add(ready[0])
    return following


@given(schedules())
def test_every_call_is_made_once_and_in_its_order(case: tuple[Schedule, tuple[int, ...]]) -> None:
    schedule, kept = case
    turns = one_by_one(schedule, kept)
    assert [schedule.call(place, kept) for place in turns] == list(range(schedule.budget))
    assert [schedule.place(call, kept) for call in range(schedule.budget)] == turns
    assert len(set(turns)) == schedule.budget
    assert max(turn for _, turn in turns) == schedule.turns - 1


@given(schedules(), st.integers(0, 30))
def test_any_prefix_goes_on_the_same_way(
    case: tuple[Schedule, tuple[int, ...]], calls: int
) -> None:
    schedule, kept = case
    turns = one_by_one(schedule, kept)
    assert one_by_one(schedule, kept, set(turns[:calls])) == turns[calls:]


@given(schedules(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_several_threads_take_the_same_turns_and_build_on_recorded_ones(
    case: tuple[Schedule, tuple[int, ...]], threads: int, chance: random.Random
) -> None:
    schedule, kept = case
    recorded: set[Place] = set()
    begun: list[Place] = []
    in_progress: list[Place] = []
    while True:
        for place in schedule.ready(recorded, known(schedule, recorded, kept)):
            if len(in_progress) < threads and place not in begun:
                sample, turn = place
                assert turn == 0 or {(sample, n) for n in range(turn)} <= recorded
                assert turn == 0 or {(n, 0) for n in range(schedule.drafts)} <= recorded
                begun.append(place)
                in_progress.append(place)
        if not in_progress:
            break
        recorded.add(in_progress.pop(chance.randrange(len(in_progress))))
    assert sorted(begun) == sorted(one_by_one(schedule, kept))


def test_the_best_drafts_are_refined_in_alternation() -> None:
    hybrid = schedule_of(run(strategy="hybrid", drafts=4, refine_best=2, budget=9))
    drafts = [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert one_by_one(hybrid, (2, 0)) == [*drafts, (2, 1), (0, 1), (2, 2), (0, 2), (2, 3)]
    assert hybrid.turns == 4


def test_a_turn_that_is_missing_comes_before_those_that_build_on_it() -> None:
    refine = schedule_of(run(budget=5))
    assert one_by_one(refine, (0,), {(0, 0), (0, 2)}) == [(0, 1), (0, 3), (0, 4)]
    hybrid = schedule_of(run(strategy="hybrid", drafts=2, refine_best=1, budget=4))
    assert one_by_one(hybrid, (0,), {(0, 0), (0, 1)}) == [(1, 0), (0, 2)]


@pytest.mark.parametrize("budget", [1, 7])
def test_sample_is_drafts_and_refine_is_one_that_is_refined(budget: int) -> None:
    sample = schedule_of(run(strategy="sample", budget=budget))
    assert one_by_one(sample, (0,)) == [(number, 0) for number in range(budget)]
    refine = schedule_of(run(strategy="refine", budget=budget))
    assert one_by_one(refine, (0,)) == [(0, number) for number in range(budget)]
    assert (sample.turns, refine.turns) == (1, budget)


def test_every_call_of_every_run_has_its_own_seed() -> None:
    seeds = {call_seed(run(seed=seed), call) for seed in range(5) for call in range(100)}
    assert len(seeds) == 500
