"""The beginning of a turn: its prompt from what is remembered, and what the model is asked."""

from __future__ import annotations

from agent.config.feedback_spec import Component
from agent.config.schedule import call_seed
from agent.loop.deps import Deps
from agent.prompt.feedback import Memory, remember, sections
from agent.prompt.prompt import Frame, render_prompt
from agent.prompt.shuffled import choose
from agent.record.completion import CompletionRequest, Message
from agent.record.store import request_hash
from agent.record.turn import PendingTurn
from agent.record.turn_log import TurnKey


def new_turn(deps: Deps, key: TurnKey) -> PendingTurn:
    config, store = deps.config, deps.store
    memory, shown = memory_before(deps, key), config.shown_feedback
    shuffled = choose(config, store.log, key, memory.base) if memory.base else None
    other = shuffled[1] if shuffled else None
    feedback = tuple(sections(shown, memory, store.kernel, other, deps.rival.get()))
    frame = Frame(
        reference=deps.reference,
        hardware=deps.hardware,
        hidden_sizes=deps.problem.has_hidden_sizes,
        templates=deps.templates,
        rival=deps.rival.get(),
    )
    spent = store.log.progress(key.problem).spent
    refined = memory.base if Component.KERNEL in shown else None
    works = refined is not None and refined.is_correct
    prompt = render_prompt(config, frame, key.turn, feedback, spent, shows_answer=works)
    return PendingTurn(
        prompt=store.save_prompt(prompt.text),
        completion=request_hash(request_of(deps, key, prompt.text)),
        parent=refined.candidate if refined else None,
        prompt_ledger=prompt.ledger,
        shuffled_with=shuffled[0] if shuffled else None,
    )


def memory_before(deps: Deps, key: TurnKey) -> Memory:
    """What the prompt of a turn was, or is, built from: the turns of its sample before it."""
    turns = deps.store.log.of(key.problem, key.sample)
    return remember(deps.config, [turn for turn in turns if turn.turn < key.turn])


def request_of(deps: Deps, key: TurnKey, prompt: str) -> CompletionRequest:
    config = deps.config
    return CompletionRequest(
        model=config.model,
        messages=(Message(role="user", content=prompt),),
        temperature=config.temperature,
        seed=call_seed(config, deps.turns.call_of(key)),
        arguments=config.model_args,
        problem=key.problem,
        sample=key.sample,
        turn=key.turn,
    )
