"""A recorded run as lines for people: an overview, then each problem turn by turn."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from agent.record import figures
from agent.record.best import best_of
from agent.record.charge import spent_on
from agent.record.result import ProblemResult, Stop
from agent.record.rival import Rival
from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.command.command_line import Line
from evaluator.evaluation import Status
from evaluator.settings import BaselineName
from tools.advice.words import advice_lines, score_lines
from tools.profiling.kept_report import kept_reports
from tools.profiling.profile_facts import byte_words

MESSAGE_LINES = 12
NAME_WIDTH = 90


def overview(turns: Sequence[TurnRecord], results: Iterable[ProblemResult] = ()) -> Iterator[Line]:
    """One line a problem, in the order in which the problems first appear; `results` says why each
    got no further turn, and what came of judging its best kernel again, as far as that is known."""
    problems = by_problem(turns)
    told = {result.problem: result for result in results}
    width = max((len(problem) for problem in problems), default=0)
    yield "dim", f"{'problem':<{width}}  turns  correct  {'best over eager':<20}  spent"
    for problem, records in problems.items():
        result = told.get(problem)
        # Turns may have been recorded since the last command came to an end.
        ended_with = result if result and result.turns == len(records) else None
        best = ended_with.best if ended_with else best_of(records)
        verdict = ended_with.verdict if ended_with else best.evaluation if best else None
        timing = verdict.timing if verdict else None
        text = figures.speedup(timing) if timing else "no correct kernel" if not best else "-"
        correct = sum(record.evaluation.status is Status.CORRECT for record in records)
        cost = figures.cost(spent_on(records).cost_usd)
        style = "green" if timing and timing.verdict == "faster" else ""
        stop = result.stop if result else Stop.CALLS
        ended = "" if stop is Stop.CALLS else f"  stopped: {stop}"
        if ended_with is not None and (ended_with.confirmation or ended_with.struck):
            failed = f", {len(ended_with.struck)} struck" if ended_with.struck else ""
            ended = f"  judged again{failed}{ended}"
        yield (
            style,
            f"{problem:<{width}}  {len(records):>5}  {correct:>7}  {text:<20}  {cost}{ended}",
        )


def unjudged_lines(problems: Iterable[ProblemResult]) -> list[Line]:
    """One line for each problem that ended with an error before its first turn."""
    return [
        ("red", f"{entry.problem}: no turn was taken: {entry.error}")
        for entry in problems
        if entry.error and not entry.turns
    ]


def rival_lines(rival: Rival | None, best: TurnRecord | None) -> Iterator[Line]:
    """What PyTorch itself reaches, and the best kernel against the faster of the two."""
    if rival is None:
        return
    times = rival.times_us
    told = [f"{name} {figures.latency(us)}" for name, us in times.items()]
    timing = best.evaluation.timing if best is not None else None
    if timing is not None and len(times) > 1:
        ratio = figures.ratio(min(times.values()) / timing.latency_us)
        told.append(f"the best kernel is {ratio}x the faster of the two (measured apart)")
    yield "", f"PyTorch, before the first turn: {', '.join(told) or 'not measured'}"
    for kernel in rival.longest:
        share, time = figures.percent(kernel.share), figures.latency(kernel.time_us)
        yield "dim", f"  {share:>5}  {time:>8}  {kernel.launches:>3}x  {kernel.name[:NAME_WIDTH]}"
    for note in rival.notes:
        yield "yellow", f"  {note}"


def by_problem(turns: Sequence[TurnRecord]) -> dict[str, list[TurnRecord]]:
    """The records of each problem, by call."""
    problems: dict[str, list[TurnRecord]] = {}
    for turn in turns:
        problems.setdefault(turn.problem, []).append(turn)
    for records in problems.values():
        records.sort(key=lambda record: (record.call, record.sample, record.turn))
    return problems


def turn_lines(
    record: TurnRecord,
    records: Sequence[TurnRecord],
    files: RunFiles,
    *,
    prompt: bool = False,
    diff: bool = True,
) -> Iterator[Line]:
    """One turn of a problem whose turns are `records`; what isn't on disk any more is left out."""
    is_best = best_of(records) is record
    status = record.evaluation.status
    style = "bold green" if is_best else "bold" if status is Status.CORRECT else "bold yellow"
    place = figures.place(record)
    yield style, f"{place}: {status}, {figures.outcome(record)}{'  (best)' if is_best else ''}"
    if record.plan:
        yield "", f"  plan: {record.plan}"
    yield from _figures(record)
    yield from _failure(record)
    yield from _profile(record, files)
    yield from _told(record)
    yield from _twins(record)
    yield "dim", f"  {_spent(record)}"
    if prompt:
        yield from _prompt(record, files)
    if diff:
        yield from _diff(record, records, files)
    yield "", ""


def _figures(record: TurnRecord) -> Iterator[Line]:
    timing = record.evaluation.timing
    if timing is None:
        return
    parts = [f"time: {figures.latency(timing.latency_us)}"]
    for name, baseline in timing.baselines.items():
        part = f"{name}: {figures.latency(baseline.latency_us)}"
        if name is not BaselineName.EAGER:
            part += f" ({figures.ratio(baseline.speedup)}x, {baseline.verdict})"
        parts.append(part)
    if timing.sol_fraction is not None:
        parts.append(f"{figures.percent(timing.sol_fraction)} of the speed-of-light bound")
    yield "", f"  {', '.join(parts)}"


def _failure(record: TurnRecord) -> Iterator[Line]:
    if record.evaluation.status is Status.CORRECT:
        return
    # The first line of the message stands in the heading already.
    lines = record.evaluation.message.strip().splitlines()[1:]
    build = record.evaluation.build
    if record.evaluation.status is Status.BUILD_ERROR and build is not None and not lines:
        lines = build.log.strip().splitlines()
    lines = lines or record.evaluation.detail.strip().splitlines()[-MESSAGE_LINES:]
    for line in lines[:MESSAGE_LINES]:
        yield "yellow", f"  | {line}"
    if len(lines) > MESSAGE_LINES:
        yield "dim", f"  | ({len(lines) - MESSAGE_LINES} more lines in turns.jsonl)"


def _profile(record: TurnRecord, files: RunFiles) -> Iterator[Line]:
    if record.profile is not None:
        yield "magenta", f"  bottleneck: {record.profile.bottleneck} (from {record.profile.rung})"
        told = {f"- bottleneck: {record.profile.bottleneck}"}
        told |= {f"- {advice.evidence}" for advice in record.profile.advice}
        summary = [line for line in record.profile.summary.splitlines() if line not in told]
        for line in (*summary, *advice_lines(record.profile.advice)):
            yield "", f"  : {line}"
        folder = files.profile_folder(record.candidate or "")
        for name, size in kept_reports(folder).items():
            yield "dim", f"  kept: {folder / name} ({byte_words(size)})"
    elif record.profile_error:
        yield "yellow", f"  no profile: {record.profile_error}"


def _told(record: TurnRecord) -> Iterator[Line]:
    """What the prompt told, and what became of its advice."""
    for line in score_lines(record.advice_scores):
        yield "magenta", f"  advice: {line}"
    if (other := record.shuffled_with) is not None:
        whose = other.turn or f"{other.specimen}, recorded"
        yield "yellow", f"  shuffled: the prompt told of kernel {other.kernel} ({whose})"
    if record.prompt_ledger is not None:
        for line in figures.ledger(record.prompt_ledger):
            yield "dim", f"  {line}"


def _twins(record: TurnRecord) -> Iterator[Line]:
    if record.judged_with:
        yield "dim", f"  judged with {record.judged_with}, whose kernel is identical"
    if record.profiled_with:
        yield "dim", f"  profiled with {record.profiled_with}, whose kernel is identical"


def _spent(record: TurnRecord) -> str:
    seconds, usage = record.seconds, record.usage
    phases = [("model", seconds.model), ("build", seconds.build), ("judge", seconds.judge)]
    if seconds.profile:
        phases.append(("profile", seconds.profile))
    times = ", ".join(f"{name} {figures.duration(value)}" for name, value in phases)
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    again = f", repeated {record.repeated}x" if record.repeated else ""
    return f"{times}; {tokens}, {figures.cost(usage.cost_usd)}{again}"


def _prompt(record: TurnRecord, files: RunFiles) -> Iterator[Line]:
    try:
        text = files.prompt(record.prompt)
    except FileNotFoundError:
        yield "dim", f"  (prompt {record.prompt} is not kept here)"
        return
    yield "dim", f"  prompt {record.prompt}:"
    for line in text.splitlines():
        yield "cyan", f"  > {line}"


def _diff(record: TurnRecord, records: Sequence[TurnRecord], files: RunFiles) -> Iterator[Line]:
    """Against the kernel that was to be refined, else the sample's kernel before this one."""
    if record.candidate is None:
        return
    before = _before(record, records)
    if before is None or before.candidate is None:
        return
    if before.candidate == record.candidate:
        yield "dim", f"  the same kernel as that of turn {before.turn}"
        return
    try:
        old, new = files.kernel(before.candidate), files.kernel(record.candidate)
    except FileNotFoundError as error:
        yield "dim", f"  (no diff: {error.filename} is not kept here)"
        return
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in difflib.unified_diff(
        old.splitlines(),
        new.splitlines(),
        f"turn {before.turn} {before.candidate}",
        f"turn {record.turn} {record.candidate}",
        n=2,
        lineterm="",
    ):
        yield styles.get(line[:1], ""), f"  {line}"


def _before(record: TurnRecord, records: Sequence[TurnRecord]) -> TurnRecord | None:
    earlier = [
        other
        for other in records
        if other.sample == record.sample and other.turn < record.turn and other.candidate
    ]
    parents = [other for other in earlier if other.candidate == record.parent]
    return next(iter(reversed(parents or earlier)), None)
