"""What the prompt of a turn says: the same to a model that is asked, and to an agent that asks."""

from __future__ import annotations

from agent.config.feedback_spec import Component, FeedbackSpec
from agent.loop.deps import Deps
from agent.prompt.feedback import Memory, remember, sections
from agent.prompt.prompt import Frame, Prompt, render_prompt
from agent.prompt.section import Section
from agent.prompt.shuffled import choose
from agent.record.turn import ShuffledKernel, TurnRecord
from agent.record.turn_log import TurnKey
from evaluator.rival import Rival
from problems.sizes import SizeClass


def memory_before(deps: Deps, key: TurnKey) -> Memory:
    """What the prompt of a turn was, or is, built from: the turns of its sample before it."""
    turns = deps.store.log.of(key.problem, key.sample)
    return remember(deps.config, [turn for turn in turns if turn.turn < key.turn])


def feedback_on(
    deps: Deps, key: TurnKey, memory: Memory, shown: FeedbackSpec | None = None
) -> tuple[tuple[Section, ...], ShuffledKernel | None]:
    """What the prompt of the turn `key` says of earlier ones, and the kernel that a shuffled
    control shows in it. `shown`: only these components."""
    shown, store = shown or deps.config.shown_feedback, deps.store
    shuffled = choose(deps.config, store.log, key, memory.base) if memory.base else None
    kernel, other = shuffled or (None, None)
    return tuple(sections(shown, memory, store.kernel, other, known_rival(deps))), kernel


def prompt_with(deps: Deps, key: TurnKey, memory: Memory, feedback: tuple[Section, ...]) -> Prompt:
    size_class = SizeClass.of(deps.config.first_device)
    frame = Frame(
        reference=deps.reference,
        hardware=deps.hardware,
        hidden_sizes=deps.problem.has_hidden_sizes,
        cases=deps.problem.cases(size_class),
        rival=known_rival(deps),
    )
    spent = deps.store.log.progress(key.problem).spent
    refined = refined_by(deps, memory)
    works = refined is not None and refined.is_correct
    return render_prompt(deps.config, frame, key.turn, feedback, spent, shows_answer=works)


def refined_by(deps: Deps, memory: Memory) -> TurnRecord | None:
    """The turn whose kernel the prompt shows to be refined."""
    return memory.base if Component.KERNEL in deps.config.shown_feedback else None


def known_rival(deps: Deps) -> Rival | None:
    """What every prompt of the run shows, as it was first measured."""
    return deps.store.rival(deps.problem.id) if deps.config.rival != "none" else None


def check_problem(deps: Deps) -> None:
    """See that the problem can be judged, and keep what PyTorch reaches. Raises
    `InfrastructureError`."""
    found = deps.check.run()
    if deps.config.rival != "none" and known_rival(deps) is None:
        deps.store.save_rival(deps.problem.id, found)
