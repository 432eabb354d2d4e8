"""A recorded run as lines for people: an overview, then each problem turn by turn."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from agent.config.feedback_spec import Component, Control, FeedbackSpec
from agent.config.run_config import RunConfig
from agent.prompt.feedback import execution_words
from agent.prompt.measured import Subject, measured_sections
from agent.prompt.prompt import limits_left, rival_words
from agent.record import figures
from agent.record.progress import best_of
from agent.record.result import ProblemResult, Spent, Stop, spent_on
from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.command.command_line import Line
from evaluator.evaluation import Status
from evaluator.rival import Rival
from tools.advice.words import in_vain
from tools.profiling.profile_facts import count_words

DETAIL_LINES = 12


def overview(
    turns: Sequence[TurnRecord],
    results: Iterable[ProblemResult] = (),
    config: RunConfig | None = None,
) -> Iterator[Line]:
    """One line a problem, in the order in which the problems first appear; `results` says why each
    got no further turn, and what came of judging its best kernel again, as far as that is known;
    `config`, what is left of its budget."""
    problems = by_problem(turns)
    by_name = {result.problem: result for result in results}
    width = max((len(problem) for problem in problems), default=0)
    yield "dim", f"{'problem':<{width}}  turns  correct  {'best over eager':<20}  spent"
    for problem, records in problems.items():
        result = by_name.get(problem)
        # Turns may have been recorded since the last command came to an end.
        ended_with = result if result and result.turns == len(records) else None
        best = ended_with.best if ended_with else best_of(records)
        verdict = ended_with.verdict if ended_with else best.evaluation if best else None
        timing = verdict.timing if verdict else None
        text = figures.speedup(timing) if timing else "no correct kernel" if not best else "-"
        correct = sum(record.is_correct for record in records)
        spent = spent_on(records)
        cost = figures.cost(spent.cost_usd)
        style = "green" if timing and timing.verdict == "faster" else ""
        stop = result.stop if result else Stop.CALLS
        ended = f"  stopped: {stop}" if stop is not Stop.CALLS else _left(config, spent)
        if ended_with is not None and (ended_with.confirmation or ended_with.struck):
            failed = f", {len(ended_with.struck)} struck" if ended_with.struck else ""
            ended = f"  judged again{failed}{ended}"
        yield (
            style,
            f"{problem:<{width}}  {len(records):>5}  {correct:>7}  {text:<20}  {cost}{ended}",
        )


def _left(config: RunConfig | None, spent: Spent) -> str:
    calls = config.budget - spent.calls if config is not None else 0
    if config is None or calls <= 0:
        return ""
    return f"  left: {', '.join([count_words(calls, 'call'), *limits_left(config, spent)])}"


def unjudged_lines(problems: Iterable[ProblemResult]) -> list[Line]:
    return [
        ("red", f"{entry.problem}: no turn was taken: {entry.error}")
        for entry in problems
        if entry.error and not entry.turns
    ]


def rival_lines(rival: Rival | None, best: TurnRecord | None) -> Iterator[Line]:
    """What PyTorch itself reaches, in the words of the prompt, and the best kernel against it."""
    if rival is None:
        return
    title, _, text = rival_words(rival).partition("\n")
    yield from _block(title.strip("# "), text)
    times, timing = rival.times_us, best.evaluation.timing if best is not None else None
    if timing is not None and len(times) > 1:
        ratio = figures.ratio(min(times.values()) / timing.latency_us)
        yield "", f"  the best kernel is {ratio}x the faster of the two (measured apart)"
    for note in rival.notes:
        yield "yellow", f"  {note}"
    yield "", ""


def by_problem(turns: Sequence[TurnRecord]) -> dict[str, list[TurnRecord]]:
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
    config: RunConfig | None = None,
    *,
    prompt: bool = False,
    answer: bool = False,
    diff: bool = True,
) -> Iterator[Line]:
    """One turn of a problem whose turns are `records`; what isn't on disk any more is left out."""
    is_best = best_of(records) is record
    status = record.evaluation.status
    style = "bold green" if is_best else "bold" if status is Status.CORRECT else "bold yellow"
    place = figures.place(record)
    yield (
        style,
        f"{place}: {status}, {figures.outcome(record.evaluation)}{'  (best)' if is_best else ''}",
    )
    if record.plan:
        yield "", f"  plan: {record.plan}"
    yield from _refined(record, records, config)
    yield from _said(record, files)
    yield from _origins(record)
    yield "dim", f"  {_spent(record)}"
    yield from _texts(record, files, prompt, answer)
    if diff:
        yield from _diff(record, records, files)
    yield "", ""


def _refined(
    record: TurnRecord, records: Sequence[TurnRecord], config: RunConfig | None
) -> Iterator[Line]:
    """What the prompt asked to refine, and its advice where earlier turns had changed it."""
    base, earlier = _before(record, records), _earlier(record, records)
    if base is None or base.candidate != record.parent:
        return
    best = " (the best so far)" if best_of(earlier) is base else ""
    yield "", f"  refined: the kernel of {figures.place(base)}{best}"
    advised = FeedbackSpec.parse(record.feedback).control_of(Component.ADVICE) is Control.REAL
    if base.profile is None or not advised or (config and config.history == "last"):
        return
    tried = in_vain([score for turn in earlier for score in turn.advice_scores])
    if tried & {advice.rule for advice in base.profile.advice}:
        subject = Subject(base.profile, None, tried=tried)
        for section in measured_sections(FeedbackSpec.parse("A"), subject, base.turn, None):
            yield from _block("What the prompt advised", section.text)


def _said(record: TurnRecord, files: RunFiles) -> Iterator[Line]:
    """What a prompt says of this kernel, in its words."""
    evaluation, kernel = record.evaluation, record.candidate or ""
    is_kept = files.kernel_path(kernel).is_file()
    rival = files.rival(record.problem)
    words = execution_words(evaluation, files.kernel(kernel) if is_kept else "", rival)
    if not is_kept:  # so the words quote no line of it
        frames = evaluation.detail.splitlines()[-DETAIL_LINES:]
        words = "\n".join([words, *(line for line in frames if line not in words)])
    yield from _block("What execution said", words, "" if record.is_correct else "yellow")
    raw = Component.RAW in FeedbackSpec.parse(record.feedback)
    compile_us = rival.compile_us if rival else None
    timing, scores = evaluation.timing, record.advice_scores
    subject = Subject(record.profile, timing, scores, compile_us=compile_us)
    said = {f"- turn: {record.turn}", *words.splitlines()}
    spec = FeedbackSpec.parse("P+R" if raw else "P")
    for section in measured_sections(spec, subject, record.turn, None):
        lines = [line for line in section.text.splitlines() if line not in said]
        yield from _block(section.title, "\n".join(lines))
    if record.profile_error:
        yield "yellow", f"  no profile: {record.profile_error}"


def _block(title: str, text: str, style: str = "") -> Iterator[Line]:
    if text.strip():
        yield "magenta", f"  {title}"
        for line in text.strip("\n").splitlines():
            yield style, f"    {line}".rstrip()


def _origins(record: TurnRecord) -> Iterator[Line]:
    """Other kernels that the prompt showed, or whose verdict or profile was taken over."""
    if (other := record.shuffled_with) is not None:
        whose = other.turn or f"{other.specimen}, recorded"
        yield "yellow", f"  shuffled: the prompt showed kernel {other.kernel} ({whose})"
    if record.prompt_ledger is not None:
        for line in figures.ledger(record.prompt_ledger):
            yield "dim", f"  {line}"
    for work, other_turn in (("judged", record.judged_with), ("profiled", record.profiled_with)):
        if other_turn:
            yield "dim", f"  {work} with {other_turn}, whose kernel is identical"


def _spent(record: TurnRecord) -> str:
    seconds, usage = record.seconds, record.usage
    phases = [("model", seconds.model), ("build", seconds.build), ("judge", seconds.judge)]
    if seconds.profile:
        phases.append(("profile", seconds.profile))
    times = ", ".join(f"{name} {figures.duration(value)}" for name, value in phases)
    again = f", repeated {record.repeated}x" if record.repeated else ""
    return f"{times}; {figures.tokens(usage)}, {figures.cost(usage.cost_usd)}{again}"


def _texts(record: TurnRecord, files: RunFiles, prompt: bool, answer: bool) -> Iterator[Line]:
    asked, answered = files.prompt_path(record.prompt), files.completion_path(record.completion)
    for wanted, path in ((prompt, asked), (answer, answered)):
        if wanted and not path.exists():
            yield "dim", f"  ({path} is not kept here)"
    if prompt and asked.exists():
        yield from _block(f"Prompt {record.prompt}", files.prompt(record.prompt), "cyan")
    if answer and answered.exists():
        completion = files.completion(record.completion).completion
        yield from _block("Reasoning", completion.reasoning, "dim")
        yield from _block(f"Answer {record.completion}", completion.text, "green")


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
    earlier = [other for other in _earlier(record, records) if other.candidate]
    parents = [other for other in earlier if other.candidate == record.parent]
    return best_of(parents) or next(iter(reversed(parents or earlier)), None)


def _earlier(record: TurnRecord, records: Sequence[TurnRecord]) -> list[TurnRecord]:
    return [turn for turn in records if turn.sample == record.sample and turn.turn < record.turn]
