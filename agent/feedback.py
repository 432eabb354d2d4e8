"""What a turn is told about earlier ones: evaluations and profiles as text, by letters.

G is the kernel's source, E what execution said, P what the profiler said. A letter that is off
leaves no trace: neither its sections nor anything that could only be known through it. Headings
and the keys at the beginning of lines are a contract with programs that read prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from agent.record import TurnRecord
from agent.strategies import Memory
from evaluator.evaluation import BaselineName, Evaluation, Status, Timing
from tools.diagnose import explain

SourceReader = Callable[[str], str]
"""From a kernel's hash to its source."""


@dataclass(frozen=True)
class Limits:
    """Where feedback is cut, so that a prompt stays within bounds however long a run gets."""

    source_characters: int = 40_000
    explanation_characters: int = 6_000
    history_rows: int = 40
    plan_characters: int = 200
    profile_lines: int = 25


LIMITS = Limits()


@dataclass(frozen=True)
class Section:
    """One part of the prompt: `## <title>` and what follows."""

    title: str
    text: str


def limits_as_facts() -> dict[str, int]:
    """The limits in force, for the run's record."""
    return asdict(LIMITS)


def sections(
    letters: frozenset[str], memory: Memory, read_source: SourceReader
) -> tuple[Section, ...]:
    """The feedback sections of a prompt, in their order; none without letters or earlier turns."""
    return tuple(_sections(letters, memory, read_source))


def _sections(
    letters: frozenset[str], memory: Memory, read_source: SourceReader
) -> Iterator[Section]:
    base, last = memory.base, memory.last
    if last is None:
        return
    if "G" in letters and base is not None and base.candidate is not None:
        which = "the best so far" if memory.base_is_best else "the last"
        kernel = fenced(read_source(base.candidate))
        yield Section("The kernel to refine", f"From turn {base.turn} ({which}).\n\n{kernel}")
    if "E" in letters:
        yield Section("What execution said", _execution(letters, memory, read_source))
    if letters & {"G", "E"} and len(memory.earlier) > 1:
        yield Section("Earlier attempts", _table(letters, memory.earlier))
    if "G" in letters and _last_is_shown(memory) and last.candidate is not None:
        kernel = fenced(read_source(last.candidate))
        yield Section("The last kernel", f"From turn {last.turn}.\n\n{kernel}")
    if "P" in letters and base is not None and base.profile is not None:
        named = f"- bottleneck: {base.profile.bottleneck}"
        summary = base.profile.summary.strip().removeprefix(named).strip()
        lines = summary.splitlines()[: LIMITS.profile_lines]
        yield Section("What the profiler said", "\n".join([named, f"- turn: {base.turn}", *lines]))


def _last_is_shown(memory: Memory) -> bool:
    """The last kernel failed and another one is to be refined: its source explains what failed."""
    base, last = memory.base, memory.last
    if base is None or last is None or base.turn == last.turn:
        return False
    return last.evaluation.status is not Status.CORRECT


def _execution(letters: frozenset[str], memory: Memory, read_source: SourceReader) -> str:
    assert memory.last is not None
    # Our words on a failure quote the kernel, which only G may show.
    source_of = read_source if "G" in letters else (lambda _: "")
    blocks = [_turn_block(memory.last, source_of)]
    base = memory.base
    if "G" in letters and base is not None and base.turn != memory.last.turn:
        blocks.append(f"Turn {base.turn}, the kernel to refine:\n\n{_turn_block(base, source_of)}")
    return "\n\n".join(blocks)


def _turn_block(turn: TurnRecord, source_of: SourceReader) -> str:
    evaluation = turn.evaluation
    lines = [f"- turn: {turn.turn}", f"- status: {evaluation.status}"]
    if evaluation.status is Status.CORRECT:
        lines += _time_lines(evaluation)
        return "\n".join(lines)
    source = source_of(turn.candidate) if turn.candidate else ""
    if evaluation.status is Status.NO_CODE and evaluation.message:
        words = evaluation.message
    else:
        words = explain(evaluation, source)
    return "\n".join([*lines, "", cut(words, LIMITS.explanation_characters)])


def _time_lines(evaluation: Evaluation) -> list[str]:
    timing = evaluation.timing
    if timing is None:
        return ["- time: not measured", *(f"- note: {note}" for note in evaluation.notes)]
    eager = timing.baselines.get(BaselineName.EAGER)
    lines = [f"- time: {timing.latency_us:.1f} us"]
    if eager is not None:
        lines.append(f"- eager: {eager.latency_us:.1f} us")
    lines.append(f"- speedup over eager: {_speedup(timing)}")
    compiled = timing.baselines.get(BaselineName.COMPILE)
    if compiled is not None:
        lines.append(
            f"- speedup over torch.compile: {compiled.speedup:.2f}x, 95 % interval"
            f" [{compiled.speedup_low:.2f}, {compiled.speedup_high:.2f}] ({compiled.verdict})"
        )
    if timing.sol_fraction is not None:
        fraction = f"{100 * timing.sol_fraction:.0f} %"
        lines.append(f"- distance to the bound: {fraction} of the speed of light")
    return lines


def _speedup(timing: Timing) -> str:
    interval = f"[{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
    return f"{timing.speedup:.2f}x, 95 % interval {interval} ({timing.verdict})"


def _table(letters: frozenset[str], turns: tuple[TurnRecord, ...]) -> str:
    columns: dict[str, Callable[[TurnRecord], str]] = {"turn": lambda turn: str(turn.turn)}
    if "G" in letters:
        columns["plan"] = lambda turn: _cell(turn.plan)
    if "E" in letters:
        columns["status"] = lambda turn: str(turn.evaluation.status)
        columns["speedup"] = _speedup_cell
    shown = turns[-LIMITS.history_rows :]
    rows = [list(columns), ["---"] * len(columns)]
    rows += [[cell(turn) for cell in columns.values()] for turn in shown]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if len(shown) < len(turns):
        lines.append(f"\n({len(turns) - len(shown)} earlier rows left out.)")
    return "\n".join(lines)


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
    return f"{fence}python\n{cut(source.rstrip(), LIMITS.source_characters)}\n{fence}"


def cut(text: str, limit: int) -> str:
    """`text`, of which the middle is left out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head, tail = 2 * limit // 3, limit // 3
    gap = len(text) - head - tail
    return f"{text[:head]}\n[... {gap} characters left out ...]\n{text[-tail:]}"
