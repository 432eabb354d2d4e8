"""What a run came to: a few lines a problem for a person, JSON for a program."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.config.run_config import RunConfig
from agent.record import figures
from agent.record.confirmation import Confirmation
from agent.record.result import ProblemResult, RunResult, Spent, Stop
from agent.resolution import Resolution
from evaluator.command.command_line import AWAITING, INTERRUPTED, USAGE_ERROR, Line, print_lines
from evaluator.command.option import arguments_of
from evaluator.settings import JudgeOptions
from problems.problem import Problem

_STOPPED = {
    Stop.CALLS: "",
    Stop.TOKENS: "stopped by --budget-tokens",
    Stop.USD: "stopped by --budget-usd",
    Stop.SECONDS: "stopped by --budget-seconds",
    Stop.DEVICE_SECONDS: "stopped by --budget-device-seconds",
    Stop.UNPRICED: "stopped: an answer came without a price (--allow-unpriced goes on)",
    Stop.FINISHED: "finished by the agent",
    Stop.INTERRUPTED: "interrupted",
    Stop.ANSWERS: "waits for answers",
}


def tell(result: RunResult, resolution: Resolution, *, as_json: bool, require_correct: bool) -> int:
    """Print the summary on stderr and, if asked, the JSON on stdout; the exit code is returned."""
    config, problems = resolution.config, resolution.problems
    print_lines(summary_lines(result, config, problems), stderr=True)
    if as_json:
        print(result_json(result, config, problems), flush=True)
    if result.interrupted:
        return INTERRUPTED
    if result.failed:
        return USAGE_ERROR
    if result.awaited:
        return AWAITING
    return int(require_correct and not result.all_correct)


def check_command(kernel: Path, problem: Problem, config: RunConfig) -> str:
    """The exact command that judges `kernel` again as the run did."""
    command = ["kernel-refinery", "check", str(kernel)]
    command += ["--problem", problem.id if problem.level else str(problem.path)]
    if config.suite is not None and problem.level:
        command += ["--suite", str(config.suite)]
    command += ["--device", config.first_device]
    command += arguments_of(config, JudgeOptions)
    return shlex.join(command)


def summary_lines(
    result: RunResult, config: RunConfig, problems: Sequence[Problem]
) -> Iterator[Line]:
    by_id = {problem.id: problem for problem in problems}
    yield "", ""
    for entry in result.problems:
        yield "bold", entry.problem
        yield from _problem_lines(entry, config, by_id[entry.problem])
    if config.model == figures.TUNER:
        yield "dim", f"{figures.TUNER_NOTE}."
    solved = sum(entry.best is not None for entry in result.problems)
    unjudged = sum(map(_is_unjudged, result.problems))
    missing = f", {unjudged} could not be judged" if unjudged else ""
    yield (
        "",
        f"{solved} of {len(result.problems)} problems have a correct kernel{missing};"
        f" {_spent(result.spent)}; run: {result.run}",
    )
    if result.interrupted:
        yield "yellow", "interrupted: the same command again goes on from here"
    if result.awaited:
        yield "yellow", figures.awaited(result.awaited, config.model)
    yield "dim", f"every turn: kernel-refinery show {shlex.quote(str(result.run))}"


def _problem_lines(entry: ProblemResult, config: RunConfig, problem: Problem) -> Iterator[Line]:
    stopped = entry.error if entry.stop is Stop.ERROR else _STOPPED[entry.stop]
    counts = f"correct {entry.correct}/{entry.turns}, {_spent(entry.spent)}"
    if _is_unjudged(entry):
        yield "red", f"  not judged: {entry.error}"
        yield "", f"  {_spent(entry.spent)}"
        return
    yield from map(_struck, entry.struck)
    if entry.best is None or entry.best_path is None:
        last = f", the last turn: {figures.outcome(entry.last.evaluation)}" if entry.last else ""
        yield "yellow", f"  no correct kernel{last}"
        yield "", f"  {counts}"
    else:
        timing = entry.verdict.timing if entry.verdict else None
        faster = timing is not None and timing.verdict == "faster"
        yield "green" if faster else "", f"  best: {_best(entry)}"
        if entry.last is not None and entry.last.call != entry.best.call:
            yield (
                "",
                f"  last: {figures.outcome(entry.last.evaluation)} ({figures.place(entry.last)})",
            )
        yield "", f"  {counts}"
        yield "", f"  {entry.best_path}"
        yield "cyan", f"  {check_command(entry.best_path, problem, config)}"
    if stopped:
        yield "red" if entry.stop is Stop.ERROR else "yellow", f"  {stopped}"


def _is_unjudged(entry: ProblemResult) -> bool:
    """Our side or the provider failed before any turn came to an end."""
    return entry.stop is Stop.ERROR and entry.turns == 0


def _struck(confirmation: Confirmation) -> Line:
    place = f"sample {confirmation.sample}, turn {confirmation.turn}"
    return "red", f"  {confirmation.what} ({place}): {figures.judged_again(confirmation)}"


def _best(entry: ProblemResult) -> str:
    assert entry.best is not None
    record = entry.best.model_copy(update={"evaluation": entry.verdict})
    text = f"{figures.outcome(record.evaluation)} ({figures.place(record)})"
    searched = entry.best.evaluation.timing
    if entry.confirmation is not None and searched is not None:
        text += f", judged again; {figures.ratio(searched.speedup)}x in the search"
    text += figures.properties(record.evaluation)
    timing = record.evaluation.timing
    if timing is None:
        return text
    text += f", {figures.latency(timing.latency_us)}"
    for name, baseline in timing.baselines.items():
        if name != "eager":
            text += f", {figures.ratio(baseline.speedup)}x over {name} ({baseline.verdict})"
    if timing.sol_fraction is not None:
        text += f", {figures.percent(timing.sol_fraction)} of the speed-of-light bound"
    return text


def _spent(spent: Spent) -> str:
    cost = figures.cost(spent.cost_usd)
    if spent.cost_usd is None:
        cost = f"cost unknown ({spent.unpriced} answers without a price)"
    calls = f"{spent.calls} call{'s' * (spent.calls != 1)}"
    tokens = "tokens unknown" if spent.tokens is None else f"{spent.tokens:,} tokens"
    return f"{calls}, {tokens}, {cost}, {figures.duration(spent.wall_seconds)}"


def result_json(result: RunResult, config: RunConfig, problems: Sequence[Problem]) -> str:
    """The result as one JSON object: `RunResult`, with figures a script would else work out."""
    by_id = {problem.id: problem for problem in problems}
    content = result.model_dump(mode="json")
    content["config"] = config.model_dump(mode="json")
    content["spent"] = result.spent.model_dump(mode="json")
    content["all_correct"] = result.all_correct
    for entry, written in zip(result.problems, content["problems"], strict=True):
        written["check"] = (
            check_command(entry.best_path, by_id[entry.problem], config)
            if entry.best_path
            else None
        )
    return json.dumps(content)
