"""The beginning of a turn: its prompt from what is remembered, and what the model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.draft import Draft
from agent.feedback import sections
from agent.llm.completion import CompletionRequest, Message
from agent.prompt import Frame, render_prompt
from agent.store import request_hash
from agent.stranger import choose
from agent.strategies import Memory, call_seed, letters_of, remember

if TYPE_CHECKING:
    from agent.deps import Deps
    from agent.turn_log import TurnKey


def new_draft(deps: Deps, key: TurnKey) -> Draft:
    """The prompt, rendered and stored; from now on this turn has no other."""
    config, store = deps.config, deps.store
    memory, letters = memory_before(deps, key), letters_of(config)
    stranger = choose(config, store.log, key, memory.base) if memory.base else None
    other = stranger[1] if stranger else None
    feedback = sections(letters, memory, store.kernel, other)
    frame = Frame(
        reference=deps.reference,
        hardware=deps.hardware,
        hidden_sizes=deps.problem.has_hidden_sizes,
        templates=deps.templates,
    )
    spent = store.log.standing(key.problem).spent
    prompt = render_prompt(config, frame, key.turn, feedback, spent)
    parent = memory.base.candidate if memory.base and "G" in letters else None
    draft = Draft(
        prompt=store.save_prompt(prompt.text),
        completion=request_hash(request_of(deps, key, prompt.text)),
        parent=parent,
        prompt_ledger=prompt.ledger,
        shuffled_with=stranger[0] if stranger else None,
    )
    store.save_draft(key, draft)
    return draft


def memory_before(deps: Deps, key: TurnKey) -> Memory:
    """What the prompt of a turn was, or is, built from: the turns of its sample before it."""
    turns = deps.store.log.of(key.problem, key.sample)
    return remember(deps.config, [turn for turn in turns if turn.turn < key.turn])


def request_of(deps: Deps, key: TurnKey, prompt: str) -> CompletionRequest:
    """What is sent to the model."""
    config = deps.config
    return CompletionRequest(
        model=config.model,
        messages=(Message(role="user", content=prompt),),
        temperature=config.temperature,
        seed=call_seed(config, key.sample, key.turn),
        arguments=config.model_args,
        problem=key.problem,
        sample=key.sample,
        turn=key.turn,
    )
