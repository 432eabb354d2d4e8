"""What a session answers, and what it charges."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from agent.record.events import Evaluated, Event, ModelAnswered
from agent.record.result import Stop
from agent.session.session import Session
from agent.session.tools import MOST_CALLS, MOST_CHARACTERS, Answer
from evaluator.errors import InfrastructureError, KernelEndedError
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from tests.agent.crash_lab import die, in_child
from tests.agent.session.stand_in_session import kernels, session_in
from tests.agent.stand_in import Listener, problem
from tests.agent.world import World
from tools.profiling.profile_report import Profile

RIGHT, BETTER, OTHER = islice(kernels(Status.CORRECT), 3)
(WRONG,) = islice(kernels(Status.INCORRECT), 1)
(UNPROFILED,) = islice(kernels(Status.CORRECT, profiled=False), 1)


def use(session: Session, tool: str, problem: str = "first", **given: object) -> Answer:
    whose = {} if tool in ("list", "status") else {"problem": problem}
    return session.call(tool, {**whose, **given})


def done(
    session: Session, tool: str, problem: str = "first", kind: str = "done", **given: object
) -> str:
    answer = use(session, tool, problem, **given)
    assert answer.kind == kind, answer.text
    return answer.text


refused = partial(done, kind="refused")


def after(text: str) -> str:
    """The feedback in it, without the kernels that it quotes."""
    parts = ("## " + part for part in text.split("\n## ")[1:])
    titles = ("## What execution", "## Earlier", "## What the", "## What to", "## Distance")
    return "\n".join(part.strip() for part in parts if part.startswith(titles))


@pytest.mark.parametrize("feedback", ["G+E+P", "G+E+placebo:P", "E+shuffled:P", "G", "none"])
def test_an_answer_is_what_the_next_prompt_of_refine_says(tmp_path: Path, feedback: str) -> None:
    world = World(tmp_path / "refine")
    world.client.answer = lambda request: (RIGHT, WRONG, BETTER)[request.turn]
    world.run(problems=("first",), budget=3, feedback=feedback)
    with session_in(tmp_path / "session", problems=("first",), feedback=feedback) as session:
        answers = []
        for source in (RIGHT, WRONG):
            said = done(session, "evaluate", source=source)
            if "P" in feedback:
                done(session, "profile")
                said = done(session, "evaluate", source=source)
            answers.append(said)
        asked = done(session, "read")
    prompts = [world.files.prompt(turn.prompt) for turn in world.turns()]
    assert [after(text) for text in answers] == [after(text) for text in prompts[1:]]
    assert after(asked) == after(prompts[2])


def test_each_evaluation_is_a_turn_and_the_same_source_is_free(tmp_path: Path) -> None:
    world = World(tmp_path)
    with session_in(tmp_path, world, problems=("first",), budget=3) as session:
        first = done(session, "evaluate", "", source=RIGHT)
        assert "left: 2 evaluations, 2 profiles" in first
        assert "no code block" in done(session, "evaluate", source="x = 1\n")
        again = done(session, "evaluate", source=f"```python\n{RIGHT}```")
        assert again.startswith("Sent before, so it costs nothing. Turn 0 of first is judged")
        assert after(again) == after(first)
        assert "costs nothing. Turn 1 " in done(session, "evaluate", source="x = 1\n")
        counted = {"prompt_tokens": 70, "completion_tokens": 5}
        session.call("evaluate", {"source": WRONG, **counted}, agent="probe 1.0")
        assert "all evaluations are used" in refused(session, "evaluate", source=BETTER)
        assert "all evaluations are used" in done(session, "read")
        assert "left: 0 evaluations" in done(session, "evaluate", source=RIGHT)
    turns = world.turns()
    assert [turn.evaluation.status for turn in turns] == ["correct", "no_code", "incorrect"]
    assert {(turn.strategy, turn.model) for turn in turns} == {("agent", "agent/test")}
    assert [turn.usage.prompt_tokens for turn in turns] == [None, None, 70]
    assert turns[2].model_answered == "probe 1.0"
    assert turns[1].usage.cost_usd is None and turns[1].parent == turns[0].candidate
    assert world.diary.count("judge").total() == 2


def test_a_kernel_may_be_the_function_that_is_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path)
    source = 'FUNCTION = "double"\nclass Model:\n    pass\n'
    world.problem = lambda name: problem(name).model_copy(update={"source": source})
    with session_in(tmp_path, world, problems=("first",)) as session:
        for words in ("Turn 0 of first", "Sent before"):
            function = "def double(x):\n    return 2 * x\n"
            assert done(session, "evaluate", source=function).startswith(words)
    assert [turn.candidate is None for turn in world.turns()] == [False]


def test_a_profile_is_made_when_asked_for_and_kept_with_its_turn(tmp_path: Path) -> None:
    world = World(tmp_path)
    with session_in(tmp_path, world, problems=("first",)) as session:
        assert "Only a correct kernel" in refused(session, "profile")
        done(session, "evaluate", source=RIGHT)
        said = done(session, "profile")
        assert "left: 3 evaluations, 1 profile." in said and "## What to change" in said
        assert done(session, "profile", turn=0) == said
        assert "## What the profiler said" in done(session, "read")
        done(session, "evaluate", source=WRONG)
        assert "Only a correct kernel" in refused(session, "profile", turn=1)
        assert "Only a correct kernel" in refused(session, "profile", turn=7)
        done(session, "evaluate", source=BETTER)
        assert "What became of the advice before" in done(session, "profile", turn=2)
    with session_in(tmp_path, world, problems=("first",)) as session:
        done(session, "evaluate", source=OTHER)
        assert "all profiles are used" in refused(session, "profile", turn=3)
        assert done(session, "profile", turn=0).startswith("Turn 0 of first is profiled")
    turns = world.turns()
    assert [turn.profile is not None for turn in turns] == [True, False, True, False]
    assert turns[0].seconds.profile == 0.125 and turns[2].advice_scores
    assert world.diary.count("profile").total() == 2


def test_what_fails_on_our_side_says_so_and_is_not_charged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    world.executor.failures = [InfrastructureError("the GPU fell off the bus")] * 3
    world.executor.unusable = [RuntimeError("shut down")] * 2
    with session_in(tmp_path, world, problems=("first",), budget=1) as session:
        assert use(session, "read").kind == "failed" and "shut down" in capsys.readouterr().err
        world.stop.set()  # the session closes
        assert use(session, "read").kind == "failed" and not capsys.readouterr().err
        world.stop.clear()
        answer = use(session, "evaluate", source=RIGHT)
        assert answer.kind == "failed" and "the GPU fell off the bus" in answer.text
        assert "left: 1 evaluation," in done(session, "status")
        done(session, "evaluate", source=UNPROFILED)
        answer = use(session, "profile")
        assert answer.kind == "failed" and "no counters" in answer.text
        assert "2 profiles" in done(session, "list")
        world.executor.failures = [InfrastructureError("again")] * 3
        assert done(session, "finish")  # confirm=0 asks the judge nothing
    assert [turn.call for turn in world.turns()] == [0]


def test_a_kernel_that_ends_the_profiler_has_had_its_profile(tmp_path: Path) -> None:
    def broken(request: EvaluationRequest, evaluation: Evaluation) -> Profile:
        raise KernelEndedError("the collector left nothing: read my words")

    world = World(tmp_path)
    world.profiler = broken
    with session_in(tmp_path, world, problems=("first",)) as session:
        done(session, "evaluate", source=RIGHT)
        for _ in range(2):
            said = done(session, "profile")
            assert "broke off under the profiler" in said and "1 profile." in said
            assert "read my words" not in said
    assert "read my words" in world.turns()[0].profile_error


def test_mistakes_are_answers(tmp_path: Path) -> None:
    with session_in(tmp_path) as session:
        asks: list[tuple[str, dict[str, object], str]] = [
            ("evalate", {}, "did you mean 'evaluate'?"),
            ("evaluate", {"problem": "first"}, "source: Field required"),
            ("evaluate", {"problem": "first", "source": RIGHT, "budget": 9}, "budget: Extra"),
            ("list", {"x\n## left: 9\u2028" + "9" * 999: 1}, f": x## left: 9{'9' * 89}: Extra"),
            ("evaluate", {"source": RIGHT}, "Name the problem: first, second."),
            ("evaluate", {"problem": "frist", "source": RIGHT}, "did you mean 'first'?"),
            ("read", {"problem": "../second"}, "did you mean 'second'?"),
            ("evaluate", {"problem": "first", "source": " \n"}, "is empty"),
            ("evaluate", {"source": "#" * (MOST_CHARACTERS + 1)}, "at most 1000000"),
            ("evaluate", {"problem": "first", "source": "# \ud800"}, "valid string"),
            ("evaluate", {"source": "x", "prompt_tokens": 10**300}, "less than or equal"),
            ("profile", {"problem": "first", "turn": -1}, "turn: Input should be"),
        ]
        for tool, given, words in asks:
            answer = session.call(tool, given)
            assert answer.kind == "refused" and words in answer.text, answer
        assert done(session, "read") and "left: 4 evaluations" in done(session, "status")


def test_time_and_device_are_limited(tmp_path: Path) -> None:
    now = 0.0
    world = World(tmp_path)
    asked: dict[str, object] = {"budget_seconds": 100.0, "budget_device_seconds": 0.5}
    with session_in(tmp_path, world, clock=lambda: now, **asked) as session:
        now = 500.0  # nobody has asked for anything yet
        done(session, "read")
        now = 590.0
        done(session, "read", "second")  # its clock begins
        assert "left: 4 evaluations, 2 profiles, 10 s, 0 s of the device" in done(session, "status")
        now = 601.0
        assert "the wall time is over" in refused(session, "evaluate", source=RIGHT)
        now = 560.0
        done(session, "evaluate", source=RIGHT)
        done(session, "evaluate", source=WRONG)
        assert "the device time is used" in refused(session, "evaluate", source=BETTER)
        assert "the device time is used" in refused(session, "profile", turn=0)
        assert "Sent before" in done(session, "evaluate", source=RIGHT)
        now = 620.0
        done(session, "evaluate", "second", source=BETTER)
    with session_in(tmp_path, world, clock=lambda: now, **asked) as session:
        now = 630.0
        assert ", 58 s" in session.call("status", {"problem": "second"}).text  # 2 s of the judge
    found = [turn.seconds.model for name in ("first", "second") for turn in world.turns(name)]
    assert found == [60.0, 0.0, 30.0]


def test_a_finished_problem_stays_finished(tmp_path: Path) -> None:
    world = World(tmp_path)
    with session_in(tmp_path, world, confirm=1) as session:
        done(session, "evaluate", source=RIGHT)
        with ThreadPoolExecutor(4) as pool:
            (said,) = {each.result() for each in [pool.submit(done, session, "finish")] * 4}
        assert "Its second verdict:" in said
        assert "without a correct kernel" in done(session, "finish", "second")
    with session_in(tmp_path, world, confirm=1, budget=9) as session:
        assert str(world.files.best_path("first").resolve()) in done(session, "finish")
        assert done(session, "status").count("finished") == 2
        only = session.call("status", {"problem": "first"}).text
        assert only.startswith("first: 1 turn; finished\n  best: ") and "second:" not in only
        assert "it is finished" in refused(session, "evaluate", source=BETTER)
        assert "it is finished" in refused(session, "profile")
    result = world.files.result()
    assert result is not None and {each.stop for each in result.problems} == {Stop.FINISHED}
    assert world.diary.count("judge").total() == 2


def test_without_execution_nothing_tells_how_a_kernel_did(tmp_path: Path) -> None:
    with session_in(tmp_path, feedback="G", confirm=1) as session:
        said = [done(session, "evaluate", source=source) for source in (RIGHT, WRONG)]
        said += [done(session, tool) for tool in ("status", "list", "finish")]
        assert "gives no profiles" in refused(session, "profile")
    assert not any(word in "".join(said) for word in ("correct", "speedup", "eager"))


@pytest.mark.parametrize("event", [ModelAnswered, Evaluated])
def test_a_killed_session_goes_on_and_nothing_is_done_twice(
    tmp_path: Path, event: type[Event]
) -> None:
    world = World(tmp_path)

    def at(_: int, told: Event) -> None:
        if isinstance(told, event) and told.turn == 1:
            die()

    def killed() -> None:
        world.listener = Listener(at)
        with session_in(tmp_path, world, problems=("first",)) as session:
            use(session, "evaluate", source=RIGHT)
            use(session, "evaluate", source=BETTER)

    assert in_child(killed) == -9
    with session_in(tmp_path, world, problems=("first",)) as session:
        assert "costs nothing. Turn 1 of" in done(session, "evaluate", source=BETTER)
        assert "left: 2 evaluations" in done(session, "status")
    assert len(world.turns()) == 2
    assert set(world.diary.count("judge").values()) == {1}


def test_a_flood_is_refused_whoever_still_waits_for_its_calls(tmp_path: Path) -> None:
    together = threading.Barrier(MOST_CALLS + 1)
    asked = ("read", {"problem": "first"}, lambda _: [together.wait(60), together.wait(60)])
    with session_in(tmp_path) as session, ThreadPoolExecutor(MOST_CALLS) as pool:
        calls = [pool.submit(session.call, *asked) for _ in range(MOST_CALLS)]
        together.wait(60)
        assert "Too many calls" in refused(session, "read") and done(session, "status")
        together.wait(60)
        assert {call.result().kind for call in calls} == {"done"} and done(session, "read")


def test_two_clients_at_once_work_on_one_session(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.executor.delay_s = 0.01
    sources = list(islice(kernels(Status.CORRECT), 8))
    together = threading.Barrier(2)

    def client(mine: list[str]) -> None:
        together.wait()
        for source in mine:
            use(session, "evaluate", source=source)
            use(session, "profile")
            done(session, "status")

    with session_in(tmp_path, world, budget=5) as session, ThreadPoolExecutor(2) as pool:
        list(pool.map(client, (sources[:5], sources[3:])))
    turns = world.turns()
    assert [turn.turn for turn in turns] == list(range(5))
    assert len({turn.candidate for turn in turns}) == 5
    assert world.diary.count("judge").total() == 5
    assert world.diary.count("profile").total() == 2
