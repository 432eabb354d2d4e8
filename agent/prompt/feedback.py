"""What a prompt says about earlier turns: kernels and evaluations as text.

A component that is off leaves no trace: neither its sections nor anything that could only be known
through it. Headings and the keys at the beginning of lines are a contract with programs that read
prompts. What was measured of the kernel to refine (P, A, S, R) is in `agent.prompt.measured`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.config.feedback_spec import Component, Control, FeedbackSpec
from agent.config.run_config import RunConfig
from agent.prompt.measured import Subject, measured_sections
from agent.prompt.section import LIMITS, Section, cut
from agent.record import figures
from agent.record.progress import best_of
from agent.record.turn import TurnRecord
from evaluator.baseline import BASELINES
from evaluator.evaluation import BaselineTiming, Evaluation, Status, Timing
from evaluator.rival import Rival
from evaluator.settings import BaselineName
from tools.advice.words import in_vain, moved_words
from tools.diagnosis.diagnose import explain

KERNEL_TITLES = ("The kernel to refine", "The last kernel")
SourceReader = Callable[[str], str]
"""From a kernel's hash to its source."""


@dataclass(frozen=True)
class Memory:
    """What the next prompt may be built from; `--feedback` decides what of it is shown."""

    base: TurnRecord | None = None
    """The turn whose kernel is refined; None where no turn has held one yet."""
    which: str = "the last"
    """Of the turns: what the prompt calls `base`."""
    last: TurnRecord | None = None
    earlier: tuple[TurnRecord, ...] = ()
    """All turns so far with `--history all`, else none."""
    tells_design: bool = True


def remember(config: RunConfig, turns: Sequence[TurnRecord]) -> Memory:
    """What the next prompt may be built from, given the turns of this sample so far."""
    feedback = config.shown_feedback
    if not feedback or not turns:
        return Memory()
    with_code = [turn for turn in turns if turn.candidate is not None]
    base, which = (with_code[-1] if with_code else None), "the last"
    # Which kernel is the best is something that execution said: without E it is unknown.
    knows_best = config.start_from == "best" and Component.EXECUTION in feedback
    if knows_best and (best := best_of(turns)) is not None:
        base, which = best, "the best so far"
    earlier = tuple(turns) if config.history == "all" else ()
    return Memory(base, which, turns[-1], earlier, config.design_limit)


def sections(
    feedback: FeedbackSpec,
    memory: Memory,
    read_source: SourceReader,
    other: Subject | None = None,
    rival: Rival | None = None,
) -> Iterator[Section]:
    """The feedback sections of a prompt, in their order; none without components or earlier turns.

    `other` is the kernel that `shuffled:` shows (`agent.prompt.shuffled`).
    """
    base, last, rival = memory.base, memory.last, rival or Rival()
    if last is None:
        return
    if Component.KERNEL in feedback and base is not None and base.candidate is not None:
        whose = f"From turn {base.turn} ({memory.which})."
        yield _kernel(KERNEL_TITLES[0], whose, base, read_source)
    if Component.EXECUTION in feedback:
        yield _execution(feedback, memory, read_source, rival)
    if (Component.KERNEL in feedback or Component.EXECUTION in feedback) and len(
        memory.earlier
    ) > 1:
        yield _table(feedback, memory.earlier)
    if Component.KERNEL in feedback and _last_is_shown(memory):
        yield _kernel(KERNEL_TITLES[1], f"From turn {last.turn}.", last, read_source)
    if base is not None:
        tried = in_vain([score for turn in memory.earlier for score in turn.advice_scores])
        scores, timing = last.advice_scores, base.evaluation.timing
        designs = memory.tells_design
        subject = Subject(base.profile, timing, scores, tried, rival.compile_us, designs)
        yield from measured_sections(feedback, subject, base.turn, other)


def _kernel(title: str, whose: str, turn: TurnRecord, read_source: SourceReader) -> Section:
    assert turn.candidate is not None
    source, left_out = cut(read_source(turn.candidate).rstrip(), LIMITS.source_characters)
    return Section(title, f"{whose}\n\n{fenced(source)}", left_out)


def _last_is_shown(memory: Memory) -> bool:
    """The last kernel failed and another one is to be refined: its source explains what failed."""
    base, last = memory.base, memory.last
    if base is None or last is None or base.turn == last.turn or last.candidate is None:
        return False
    return last.evaluation.status is not Status.CORRECT


def _execution(
    feedback: FeedbackSpec, memory: Memory, read_source: SourceReader, rival: Rival
) -> Section:
    assert memory.last is not None
    # Our words on a failure quote the kernel, which only G may show.
    source_of = read_source if Component.KERNEL in feedback else (lambda _: "")
    block, left_out = _turn_block(memory.last, source_of, rival)
    base = memory.base
    if Component.KERNEL in feedback and base is not None and base.turn != memory.last.turn:
        other, more = _turn_block(base, source_of, rival)
        block += f"\n\nTurn {base.turn}, the kernel to refine:\n\n{other}"
        left_out += more
    return Section("What execution said", block, left_out)


def _turn_block(turn: TurnRecord, source_of: SourceReader, rival: Rival) -> tuple[str, int]:
    """The text, and how many characters of it are left out."""
    evaluation = turn.evaluation
    lines = [f"- turn: {turn.turn}", f"- status: {evaluation.status}"]
    if evaluation.case:
        lines.append(f"- first failing case: {evaluation.case}")
    source = source_of(turn.candidate) if turn.candidate else ""
    words = execution_words(evaluation, source, rival)
    if evaluation.status is Status.CORRECT:
        return "\n".join([*lines, words]), 0
    shown, left_out = cut(words, LIMITS.explanation_characters)
    return "\n".join([*lines, "", shown]), left_out


def _table(feedback: FeedbackSpec, turns: tuple[TurnRecord, ...]) -> Section:
    columns: dict[str, Callable[[TurnRecord], str]] = {"turn": lambda turn: str(turn.turn)}
    if Component.KERNEL in feedback:
        columns["plan"] = lambda turn: _cell(turn.plan)
    if Component.EXECUTION in feedback:
        columns["status"] = lambda turn: str(turn.evaluation.status)
        columns["speedup"] = _speedup_cell
    has_moved = any(score.moved for turn in turns for score in turn.advice_scores)
    if has_moved and feedback.control_of(Component.ADVICE) is Control.REAL:
        columns["moved as advised"] = lambda turn: _cell(moved_words(turn.advice_scores))
    rows = [_row([cell(turn) for cell in columns.values()]) for turn in turns]
    old, shown = rows[: -LIMITS.history_rows], rows[-LIMITS.history_rows :]
    lines = [_row(list(columns)), _row(["---"] * len(columns)), *shown]
    if old:
        lines.append(f"\n({len(old)} earlier rows left out.)")
    return Section("Earlier attempts", "\n".join(lines), sum(map(len, old)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _speedup_cell(turn: TurnRecord) -> str:
    timing = turn.evaluation.timing
    return f"{timing.speedup:.2f}x" if timing else "-"


def _cell(text: str) -> str:
    plain = " ".join(text.replace("|", "/").split())
    if len(plain) <= LIMITS.plan_characters:
        return plain or "-"
    return plain[: LIMITS.plan_characters - 3] + "..."


def fenced(source: str) -> str:
    """`source` as a fenced Python block whose fence does not occur in it."""
    fence = "```"
    while fence in source:
        fence += "`"
    return f"{fence}python\n{source.rstrip()}\n{fence}"


def execution_words(evaluation: Evaluation, source: str, rival: Rival | None) -> str:
    """Lines of text. `source` is the kernel's file; empty: no line of it is to be quoted. `rival`:
    what the prompt says of PyTorch's own times."""
    if evaluation.status is Status.CORRECT:
        times = [*_time_lines(evaluation), *_against_compile(evaluation, rival)]
        return "\n".join([*_error_lines(evaluation), *times])
    if evaluation.status is Status.NO_CODE and evaluation.message:
        return evaluation.message
    return explain(evaluation, source)


def _error_lines(evaluation: Evaluation) -> Iterator[str]:
    """How much of the allowed error is used: what room is left for faster arithmetic."""
    correctness = evaluation.correctness
    if correctness is None or correctness.error_ratio is None or not correctness.error_ratio_limit:
        return
    share = figures.percent(correctness.error_ratio / correctness.error_ratio_limit)
    yield f"- error: {share} of what is allowed (worst call, {correctness.error_part})"


def _time_lines(evaluation: Evaluation) -> list[str]:
    timing = evaluation.timing
    if timing is None:
        return ["- time: not measured", *(f"- note: {note}" for note in evaluation.notes)]
    eager = timing.baselines.get(BaselineName.EAGER)
    lines = [f"- time: {timing.latency_us:.1f} us"]
    if eager is not None:
        flags = f" ({eager.flags})" if eager.flags else ""
        lines.append(f"- eager: {eager.latency_us:.1f} us{flags}")
    lines.append(f"- speedup over eager: {_speedup(timing)}")
    for name, baseline in timing.baselines.items():
        if name is not BaselineName.EAGER:
            lines.append(f"- speedup over {BASELINES[name].words}: {_speedup(baseline)}")
    if timing.counted is not None:
        lines.append(f"- reached: {timing.counted.words}")
    if evaluation.cases:
        lines.append("- these figures are weighted over the cases that were timed:")
        lines += [f"  - {case.words}" for case in evaluation.cases]
    return lines


def _against_compile(evaluation: Evaluation, rival: Rival | None) -> Iterator[str]:
    """Where its time is known, and the kernel was not timed beside it."""
    timing, compile_us = evaluation.timing, rival.compile_us if rival else None
    if timing is None or compile_us is None or BaselineName.COMPILE in timing.baselines:
        return
    yield f"- speedup over torch.compile: {compile_us / timing.latency_us:.2f}x, timed separately"


def _speedup(timing: Timing | BaselineTiming) -> str:
    interval = f"[{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
    return f"{timing.speedup:.2f}x, interval {interval} ({timing.verdict})"
