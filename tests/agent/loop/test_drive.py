"""Whole runs in a stand-in world: budgets, strategies, stops, and failures on our side."""

import itertools
import os
import signal

import pytest

from agent.llm.failure import (
    ModelError,
    ModelInterruptedError,
    ModelRefusedError,
    ModelUnavailableError,
    PromptRefusedError,
)
from agent.record.completion import CompletionRequest, Usage
from agent.record.events import (
    Evaluated,
    Event,
    ModelAnswered,
    ProblemFinished,
    ProblemStarted,
    Profiled,
    TurnRecorded,
    TurnStarted,
    Waiting,
)
from agent.record.result import Stop
from agent.record.store import open_store
from agent.record.turn import PendingTurn
from evaluator.errors import JudgeDiedError, UnusableReferenceError
from problems.errors import UsageError
from tests.agent.stand_in import (
    kernel_answer,
    problem,
)
from tests.agent.world import World


def test_refine_takes_turns_and_keeps_best_and_last(world: World) -> None:
    result = world.run(budget=6)
    assert [problem.stop for problem in result.problems] == [Stop.CALLS, Stop.CALLS]
    for found in result.problems:
        turns = [turn for turn in world.files.turns() if turn.problem == found.problem]
        assert [(turn.sample, turn.turn, turn.call) for turn in turns] == [
            (0, call, call) for call in range(6)
        ]
        timed = [turn for turn in turns if turn.evaluation.timing]
        fastest = max(timed, key=lambda turn: turn.evaluation.timing.speedup)  # type: ignore[union-attr]
        assert found.best == fastest
        assert found.last == turns[-1]
        assert found.best_path is not None and fastest.candidate is not None
        assert found.best_path.read_text() == world.files.kernel(fastest.candidate)
        assert found.spent.calls == 6
        assert found.spent.cost_usd == pytest.approx(0.06)
    assert world.files.result() == result


def test_every_file_that_a_record_names_is_there(world: World) -> None:
    world.run()
    for turn in world.files.turns():
        stored = world.files.completion(turn.completion)
        assert (stored.problem, stored.sample, stored.turn) == (turn.problem, 0, turn.turn)
        assert stored.prompt == turn.prompt
        assert world.files.prompt(turn.prompt).startswith("Write a module")
        if turn.candidate:
            assert world.files.kernel(turn.candidate) in stored.completion.text
        if turn.profile:
            assert turn.candidate
            assert (world.files.profile_folder(turn.candidate) / "profile.json").exists()


def test_sample_is_independent_drafts(world: World) -> None:
    result = world.run(strategy="sample", feedback="G+E+P", budget=8, workers=4)
    for found in result.problems:
        turns = [turn for turn in world.files.turns() if turn.problem == found.problem]
        assert sorted((turn.sample, turn.turn, turn.call) for turn in turns) == [
            (sample, 0, sample) for sample in range(8)
        ]
        assert len({turn.prompt for turn in turns}) == 1
        assert found.last is not None and found.last.sample == 7
        assert found.spent.calls == 8
    requests = world.client.requests
    assert len({request.seed for request in requests}) == 8
    assert not world.seen(Profiled)


@pytest.mark.parametrize("strategy", ["refine", "sample", "hybrid"])
def test_the_first_limit_reached_stops(world: World, strategy: str) -> None:
    # 120 tokens, 0.01 dollars and 0.5 + 0.5 + 1.0 seconds a turn; nothing is profiled.
    limits = {"budget_tokens": 999, "budget_usd": 0.99, "budget_seconds": 5.9}
    digests = (digest for digest in range(1000))
    world.client.answer = lambda _: kernel_answer(next(digests))
    drafts = {"drafts": 2} if strategy == "hybrid" else {}
    result = world.run(strategy=strategy, feedback="none", budget=9, **drafts, **limits)
    assert [(found.turns, found.stop) for found in result.problems] == [(3, Stop.SECONDS)] * 2


def test_a_larger_budget_continues_and_a_finished_run_is_shown(world: World) -> None:
    world.run(budget=2)
    first = list(world.files.turns())
    assert world.run(budget=2).problems[0].turns == 2
    assert world.diary.count("model").total() == 4
    result = world.run(budget=5)
    assert [found.turns for found in result.problems] == [5, 5]
    assert world.diary.count("model").total() == 10
    assert list(world.files.turns())[:4] == first
    assert world.files.config().budget == 5


def test_a_record_that_was_taken_out_is_made_again_and_no_other(world: World) -> None:
    world.run(problems=("first",))
    path = world.folder / "run/turns.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:1] + lines[2:]))
    world.run(problems=("first",))
    assert sorted(turn.turn for turn in world.files.turns()) == [0, 1, 2, 3]
    assert set(world.diary.count("model").values()) == {1}


def test_judges_start_with_a_run_that_has_work(world: World) -> None:
    world.run(budget=2, workers=2)
    assert world.diary.path.read_text().splitlines()[0] == "begin prepare 2 cpp"
    assert world.diary.count("prepare").total() == 1
    world.run(budget=2, workers=2)
    assert world.diary.count("prepare").total() == 1
    world.run(budget=3, workers=2)
    assert world.diary.count("prepare").total() == 2


def test_the_budget_not_the_recursion_limit_ends_a_run(world: World) -> None:
    result = world.run(budget=60, problems=("first",))
    assert (result.problems[0].turns, result.problems[0].stop) == (60, Stop.CALLS)


def test_a_turn_carries_the_hashes_of_texts_and_no_text(world: World) -> None:
    journals: list[str] = []

    def read(_: int, event: Event) -> None:
        if isinstance(event, Profiled):
            journals.extend(path.read_text() for path in (world.folder / "run/pending").iterdir())

    world.listener.at = read
    world.run(budget=6)
    assert journals
    for journal in journals:
        last = PendingTurn.model_validate_json(journal.splitlines()[-1])
        assert last.is_profiled and last.candidate is not None
        assert "class ModelNew" in world.files.kernel(last.candidate)
        assert "ModelNew" not in journal and "Write a module" not in journal


def test_events_come_in_order(world: World) -> None:
    world.run(problems=("first",), budget=3)
    kinds = [type(event) for event in world.listener.events]
    assert kinds[0] is ProblemStarted and kinds[-1] is ProblemFinished
    for turn in range(3):
        own = [event for event in world.listener.events if getattr(event, "turn", None) == turn]
        assert [type(event) for event in own][:3] == [TurnStarted, ModelAnswered, Evaluated]
    recorded = world.seen(TurnRecorded)
    assert [event.record.turn for event in recorded] == [0, 1, 2]
    assert [event.spent.cost_usd for event in recorded] == pytest.approx([0.01, 0.02, 0.03])


def test_a_resumed_problem_says_what_it_has(world: World) -> None:
    world.run(budget=3, problems=("first",))
    best = world.seen(ProblemFinished)[0].result.best
    world.listener.events.clear()
    world.run(budget=4, problems=("first",))
    started = world.seen(ProblemStarted)[0]
    assert (started.recorded, started.best) == (3, best)
    assert started.spent.cost_usd == pytest.approx(0.03)


def test_our_own_failure_is_tried_again(world: World) -> None:
    world.executor.failures = [JudgeDiedError("the judge died"), JudgeDiedError("and again")]
    result = world.run(problems=("first",))
    assert (result.problems[0].turns, result.problems[0].stop) == (4, Stop.CALLS)
    assert [event.reason for event in world.seen(Waiting)] == ["the judge died", "and again"]
    # Nobody was interrupted.
    assert all(turn.repeated == 0 for turn in world.files.turns())


def test_a_lasting_failure_ends_that_problem_and_no_other(world: World) -> None:
    world.executor.failures = [JudgeDiedError("no device")] * 3
    result = world.run()
    first, second = result.problems
    assert (first.stop, first.error, first.turns) == (Stop.ERROR, "no device", 0)
    assert len(world.seen(Waiting)) == 2  # after the third failure nothing is waited for
    assert (second.stop, second.turns) == (Stop.CALLS, 4)
    assert result.failed == (first,)
    # What was paid for is there, is used by the next command, and is not bought again.
    assert first.spent.calls == 1
    again = world.run()
    assert [found.turns for found in again.problems] == [4, 4]
    assert set(world.diary.count("model").values()) == {1}


def test_what_another_attempt_cannot_mend_is_not_tried_again(world: World) -> None:
    world.executor.failures = [UnusableReferenceError("out of memory")]
    result = world.run(problems=("first",))
    assert result.problems[0].error == "out of memory"
    assert not world.seen(Waiting)
    assert world.diary.count("judge").total() == 1


def failing(world: World, error: Exception, after: int = 0) -> None:
    """Make the world's client raise from the call of that index on."""
    calls = itertools.count()

    def answer(request: CompletionRequest) -> str:
        if next(calls) >= after:
            raise error
        return world.client.write_kernel(request)

    world.client.answer = answer


@pytest.mark.parametrize(
    "kind", [ModelUnavailableError, PromptRefusedError, ModelInterruptedError, ModelRefusedError]
)
def test_unusable_answers_are_charged_although_nothing_came_of_them(
    world: World, kind: type[ModelError]
) -> None:
    error = kind("no choice in it")
    error.usage = Usage(prompt_tokens=50, completion_tokens=5, cost_usd=0.02)
    failing(world, error)
    if kind is ModelRefusedError:  # the user has to fix it: it ends the run
        with pytest.raises(UsageError, match="no choice"):
            world.run(problems=("first",))
    else:
        spent = world.run(problems=("first",)).problems[0].spent
        assert (spent.calls, spent.tokens, spent.cost_usd) == (0, 55, 0.02)
    world.stop.clear()
    world.client.answer = world.client.write_kernel
    spent = world.run(problems=("first",)).problems[0].spent
    assert (spent.calls, spent.tokens) == (4, 4 * 120 + 55)
    assert spent.cost_usd == pytest.approx(0.06)
    first = next(world.files.turns())
    assert first.usage.cost_usd == pytest.approx(0.03)


def test_control_c_without_a_handler_begins_nothing_more(world: World) -> None:
    def at(_: int, event: Event) -> None:
        if isinstance(event, Evaluated) and len(world.seen(Evaluated)) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            world.stop.wait(30)  # until the main thread has taken note

    world.listener.at = at
    # A shell that starts the tests in the background makes them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            world.run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert [turn.turn for turn in world.files.turns()] == [0, 1]


def test_an_interrupted_wait_is_an_interruption(world: World) -> None:
    def at(_: int, event: Event) -> None:
        if isinstance(event, TurnStarted) and event.turn == 1:
            world.stop.set()

    world.listener.at = at
    failing(world, ModelInterruptedError("stopped"), after=1)
    result = world.run()
    assert result.interrupted
    assert [found.stop for found in result.problems] == [Stop.INTERRUPTED] * 2
    assert [found.turns for found in result.problems] == [1, 0]


@pytest.mark.parametrize("kind", [TurnStarted, ModelAnswered, Evaluated, TurnRecorded])
def test_stop_finishes_the_turn_in_progress(world: World, kind: type[Event]) -> None:
    def at(_: int, event: Event) -> None:
        if isinstance(event, kind) and len(world.seen(kind)) == 2:
            world.stop.set()

    world.listener.at = at
    result = world.run()
    assert result.interrupted
    assert [found.turns for found in result.problems] == [2, 0]
    assert {found.stop for found in result.problems} == {Stop.INTERRUPTED}
    world.stop.clear()
    world.listener.at = None
    again = world.run()
    assert not again.interrupted
    assert [found.turns for found in again.problems] == [4, 4]
    assert set(world.diary.count("model").values()) == {1}


def test_a_finished_problem_was_not_interrupted(world: World) -> None:
    def at(_: int, event: Event) -> None:
        if isinstance(event, ProblemFinished):
            world.stop.set()

    world.listener.at = at
    result = world.run()
    assert [found.stop for found in result.problems] == [Stop.CALLS, Stop.INTERRUPTED]


def test_a_changed_problem_is_refused(world: World) -> None:
    world.run(problems=("first",), budget=1)
    world.problem = lambda name: problem(name).model_copy(update={"hash": "0" * 16})
    with pytest.raises(UsageError, match=r"first\.py has changed .* --redo"):
        world.run(problems=("first",), budget=2)


def test_another_device_is_refused(world: World) -> None:
    world.run(budget=1)
    with open_store(world.config(budget=1)) as store:
        assert store.environment()["device"]
        store.add_environment({"device": "NVIDIA Imaginary"})
    with pytest.raises(UsageError, match="begun on NVIDIA Imaginary"):
        world.run(budget=2)


def test_the_commits_that_made_turns_are_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit_after(made_by: str | None, budget: int) -> object:
        monkeypatch.setattr("agent.loop.environment.revision", lambda: made_by)
        world.run(problems=("first",), budget=budget)
        return world.files.environment()["commit"]

    assert commit_after(None, 1) is None  # outside a checkout
    assert commit_after("aaaa", 2) == "aaaa"
    assert commit_after("bbbb", 2) == "aaaa"  # only shown again
    assert commit_after("bbbb+changes", 3) == "aaaa and bbbb+changes"
    assert commit_after("aaaa", 4) == "aaaa and bbbb+changes"


def test_the_record_says_how_prompts_are_cut(world: World) -> None:
    world.run(budget=1)
    limits = world.files.environment()["prompt_limits"]
    assert isinstance(limits, dict) and limits["profile_lines"] == 25
