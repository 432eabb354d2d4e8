"""`--dry-run`: what would be run, on what, asked how, and the most that it could cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from agent.config.run_config import RunConfig
from agent.prompt.prompt import Prompt
from agent.record import figures
from agent.record.run_files import RunFiles
from agent.resolution import Resolution
from evaluator.command.command_line import Line, print_lines
from evaluator.command.option import option_name
from problems.problem import Problem

FEEDBACK_TOKENS = 30_000
"""Assumed at most for what the feedback adds to a first prompt."""


@dataclass(frozen=True)
class Plan:
    config: RunConfig
    problems: tuple[Problem, ...]
    prompt: Prompt
    """Of the first problem's first turn."""
    calls: int
    """Billed completions at most."""
    most_usd: float | None
    """None where a price or the length of an answer has no known limit."""
    recorded: int = 0
    """Turns that the run directory holds already."""

    @property
    def prompt_tokens(self) -> int:
        return self.prompt.ledger.total


def plan(resolution: Resolution) -> Plan:
    """Work out the plan. Raises `UsageError` where the run itself would."""
    from agent.job import check_judging, check_spending, refuse_session
    from agent.loop.drive import hardware_of
    from agent.loop.judging import place_of
    from agent.prompt.prompt import Frame, render_prompt
    from problems.sizes import SizeClass

    config, problems = resolution.config, resolution.problems
    refuse_session(config)
    check_spending(config)
    check_judging(config)
    problem, size_class = problems[0], SizeClass.of(config.first_device)
    frame = Frame(
        reference=problem.reference(size_class),
        hardware=hardware_of(config, place_of(config)),
        hidden_sizes=problem.has_hidden_sizes,
        cases=problem.cases(size_class),
    )
    prompt = render_prompt(config, frame, turn=0)
    return Plan(
        config=config,
        problems=problems,
        prompt=prompt,
        calls=config.budget * len(problems),
        most_usd=_most_usd(config, len(problems), prompt.ledger.total),
        recorded=sum(1 for _ in RunFiles(config.output).turns()),
    )


def _most_usd(config: RunConfig, problems: int, prompt_tokens: int) -> float | None:
    """The calls' own bound or that of `--budget-usd`, whichever is lower.

    Dollars are looked at between calls, so the limit may be overshot by one call a problem.
    """
    from agent.llm.pricing import most_it_can_cost

    limit = config.model_args.get("max_tokens", config.model_args.get("max_completion_tokens"))
    longest = prompt_tokens + (FEEDBACK_TOKENS if config.feedback else 0)
    one = most_it_can_cost(
        config.model, longest, limit if isinstance(limit, int) else None, 1, config.model_args
    )
    if one is None:
        return None
    calls = one * config.budget * problems
    if config.budget_usd is None:
        return calls
    return min(calls, (config.budget_usd + one) * problems)


def show_plan(resolution: Resolution, *, as_json: bool) -> None:
    found = plan(resolution)
    if as_json:
        print(json.dumps(plan_json(found)))
    else:
        print_lines(plan_lines(found, resolution.notes))


def plan_json(found: Plan) -> dict[str, object]:
    return {
        "config": found.config.model_dump(mode="json"),
        "problems": [
            {"id": problem.id, "suite": problem.suite, "hash": problem.hash}
            for problem in found.problems
        ],
        "prompt": found.prompt.text,
        "prompt_tokens": found.prompt_tokens,
        "prompt_ledger": found.prompt.ledger.model_dump(mode="json"),
        "calls": found.calls,
        "most_usd": found.most_usd,
        "recorded": found.recorded,
    }


def plan_lines(found: Plan, notes: tuple[str, ...] = ()) -> Iterator[Line]:
    import yaml

    yield "bold", "settings (a file for -c)"
    for line in yaml.safe_dump(found.config.model_dump(mode="json"), sort_keys=False).splitlines():
        yield "", f"  {line}"
    yield "bold", f"problems: {len(found.problems)}"
    width = max(len(problem.id) for problem in found.problems)
    for problem in found.problems:
        yield "", f"  {problem.id:<{width}}  {problem.category}".rstrip()
    yield "bold", f"first prompt, of {found.problems[0].id}: about {found.prompt_tokens:,} tokens"
    for line in found.prompt.text.splitlines():
        yield "cyan", f"  {line}".rstrip()
    for line in figures.ledger(found.prompt.ledger):
        yield "", f"  {line}"
    if found.config.rival != "none":
        yield (
            "",
            f"  with --rival {found.config.rival} what PyTorch reaches is added, once measured",
        )
    yield "bold", "the most it can cost"
    problems = len(found.problems)
    yield "", f"  {found.calls} calls: {found.config.budget} for each of {problems} problems"
    yield "", f"  {_cost(found)}"
    if found.recorded:
        yield "", f"  {found.recorded} turns are recorded already and are not done again"
    for name in ("budget_usd", "budget_tokens", "budget_seconds", "budget_device_seconds"):
        if (limit := getattr(found.config, name)) is not None:
            option = option_name(RunConfig, name)
            yield "", f"  {option} {limit:,} a problem, looked at between calls"
    for note in notes:
        yield "yellow", f"note: {note}"
    if found.config.model == figures.TUNER:
        yield "dim", f"{figures.TUNER_NOTE}."
    yield "dim", "nothing was asked, written or measured"


def _cost(found: Plan) -> str:
    if found.most_usd is None:
        return "dollars: unknown, for want of a price or of --model-args max_tokens=N"
    if found.most_usd == 0:
        return "free"
    return f"at most ${found.most_usd:,.2f}, if every prompt and answer were as long as can be"
