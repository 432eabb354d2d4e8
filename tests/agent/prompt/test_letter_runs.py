"""Whole runs of each letter and control: what their prompts, records and charges come to."""

from pathlib import Path

import pytest

from agent.config.feedback_spec import Component, FeedbackSpec
from agent.prompt.feedback import remember
from agent.view.trajectory import turn_lines
from tests.agent.stand_in import (
    SOUND_KERNEL,
    ScriptedClient,
    kernel_answer,
    number,
    verdict_on,
)
from tests.agent.world import World
from tools.advice.words import score_lines

TITLES = {
    "P": "## What the profiler said",
    "A": "## What to change",
    "S": "## Distance to the speed of light",
    "R": "## Raw metrics",
}


@pytest.mark.parametrize(
    "feedback",
    ["A", "S", "R", "G+E+A+S+R", "placebo:P", "shuffled:P", "placebo:A+shuffled:S", "shuffled:R+E"],
)
def test_a_run_of_each_letter(world: World, feedback: str) -> None:
    # Which turns are profiled follows from their prompts: of so many, some are.
    result = world.run(feedback=feedback, budget=9)
    assert [entry.turns for entry in result.problems] == [9, 9]
    spec = FeedbackSpec.parse(feedback)
    assert (world.diary.count("profile").total() > 0) == spec.needs_profile
    run, shown = world.files.config(), 0
    for problem in run.problems:
        records = world.turns(problem)
        for record in records:
            base = remember(run, records[: record.turn]).base
            prompt = world.files.prompt(record.prompt)
            for letter, title in TITLES.items():
                known = base is not None and (
                    base.evaluation.timing if letter == "S" else base.profile
                )
                wanted = Component(letter) in spec and bool(known)
                assert (title in prompt) == wanted, (record.turn, letter)
                shown += wanted
            assert record.prompt_ledger is not None
            assert record.prompt_ledger.total == -(-len(prompt) // 4)
    assert shown > 0


@pytest.mark.parametrize("feedback", ["shuffled:P", "E+shuffled:A", "shuffled:S", "shuffled:R"])
def test_shuffled_is_another_kernel_and_recorded(world: World, feedback: str) -> None:
    kernels = sound_kernels(8)
    world.client = ScriptedClient(
        world.diary,
        answer=lambda request: kernels[request.turn + 4 * (request.problem == "second")],
    )
    world.run(feedback=feedback, seed=3)
    everything = {(t.problem, t.turn): t for t in world.files.turns()}
    own = {t.candidate: t for t in everything.values()}
    told = [t for t in everything.values() if t.shuffled_with is not None]
    assert told
    run = world.files.config()
    for record in told:
        other = record.shuffled_with
        assert other is not None
        base = remember(run, world.turns(record.problem)[: record.turn]).base
        assert base is not None and other.kernel != base.candidate
        assert bool(other.turn) != bool(other.specimen)
        assert other.turn == "" or other.kernel in own
        prompt = world.files.prompt(record.prompt)
        if other.turn and "P" in feedback:
            strange = own[other.kernel].profile
            assert strange is not None and base.profile is not None
            assert strange.summary.splitlines()[0] in prompt
            assert strange.rung is base.profile.rung
            assert base.profile.summary.splitlines()[0] not in prompt
    # With one worker the second problem comes after the first, and is told of its kernels.
    later = [t.shuffled_with.turn for t in told if t.problem == "second" and t.shuffled_with]
    assert later and all(turn.startswith("first.") for turn in later)
    first = [t.shuffled_with.specimen for t in told if t.problem == "first" and t.shuffled_with]
    assert first and first[0], "nothing is measured yet: a recorded kernel"


def test_the_same_seed_tells_of_the_same_kernels(tmp_path: Path) -> None:
    def run(name: str, seed: int) -> list[object]:
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        world.run(feedback="shuffled:P", budget=5, seed=seed)
        return [(t.problem, t.turn, t.prompt, t.shuffled_with) for t in world.files.turns()]

    assert run("a", 3) == run("b", 3)


def test_advice_is_scored_in_the_turn_that_follows_it(world: World) -> None:
    answers = sound_kernels(2)
    world.client = ScriptedClient(world.diary, answer=lambda request: answers[request.turn % 2])
    world.run(feedback="G+P", budget=3, problems=("first",))
    first, second, third = world.turns("first")
    assert first.advice_scores == ()
    assert first.profile is not None and second.profile is not None
    (score,) = second.advice_scores
    assert (score.rule, score.before) == ("uncoalesced_loads", first.profile.figures["dram_pct"])
    assert score.after == second.profile.figures["dram_pct"]
    assert score.moved == (score.after > score.before * 1.05)
    assert "What became of the advice before:" in world.files.prompt(third.prompt)
    assert "What became" not in world.files.prompt(second.prompt)
    shown = "\n".join(line for _, line in turn_lines(second, [first, second], world.files))
    assert f"    - {score_lines([score])[0]}\n" in shown and "tokens (introduction " in shown


def sound_kernels(count: int) -> list[str]:
    """Different ones, each of which is correct and can be profiled."""

    def sound(digest: int) -> bool:
        source = kernel_answer(digest).partition("```python\n")[2].partition("```")[0]
        return verdict_on(source).timing is not None and number(source, 99) % 3 != 0

    return [kernel_answer(digest) for digest in range(200) if sound(digest)][:count]


@pytest.mark.parametrize("feedback", ["placebo:P", "shuffled:P", "G+E+S", "R"])
def test_what_is_not_advice_is_not_scored(world: World, feedback: str) -> None:
    world.client = ScriptedClient(world.diary, answer=lambda _: SOUND_KERNEL)
    world.run(feedback=feedback, budget=3)
    assert all(turn.advice_scores == () for turn in world.files.turns())
