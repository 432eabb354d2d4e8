"""How figures are written for people: the same in the live view, the summary and `agent.show`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.config.run_config import RunConfig, Strategy
from agent.record.completion import Usage
from agent.record.confirmation import Confirmation
from agent.record.turn import PromptLedger, TurnRecord
from evaluator.evaluation import Evaluation, Timing
from evaluator.settings import BaselineName

TUNER = "offline/tuner"
TUNER_NOTE = "offline/tuner is a rule-based kernel writer, not a language model"


def heading(path: Path, made: RunConfig | TurnRecord, device: str, budget: int | None) -> str:
    temperature = "" if made.temperature is None else f" at temperature {made.temperature:g}"
    calls = "" if budget is None else f", {budget} calls a problem"
    return (
        f"{path}: {made.strategy} {made.feedback}, {made.model}{temperature},"
        f" {made.backend} on {device}, {made.precision}{calls}"
    )


def awaited(prompts: int, *models: str) -> str:
    """`14 prompts wait for answers in FOLDER; ...`: how a round ends."""
    wait = "prompt waits for its answer" if prompts == 1 else "prompts wait for answers"
    folders = " and ".join(m.removeprefix("relay/") for m in models if m.startswith("relay/"))
    return f"{prompts} {wait} in {folders}; then give the same command again"


def speedup(timing: Timing) -> str:
    """`1.97x [1.95, 1.99]`: over eager, with its interval."""
    low, high = timing.speedup_low, timing.speedup_high
    return f"{ratio(timing.speedup)}x [{ratio(low)}, {ratio(high)}]"


def rival(timing: Timing) -> str:
    """`eager (fp32, TF32 off)`: what a speedup is over; the flags where they are recorded."""
    eager = timing.baselines.get(BaselineName.EAGER)
    return f"eager ({eager.flags})" if eager is not None and eager.flags else "eager"


def ratio(value: float) -> str:
    """Three digits: `0.98`, `1.97`, `12.4`, `135`, `7e+05` (an interval that says nothing)."""
    if value >= 1000:
        return f"{value:.0e}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def percent(fraction: float | None) -> str:
    """`61 %`; empty where nothing is known."""
    if fraction is None:
        return ""
    return f"{100 * fraction:.0f} %" if fraction >= 0.1 else f"{100 * fraction:.1f} %"


def latency(microseconds: float) -> str:
    """`812 us`, `8.12 us`, `1.60 ms`, `2.30 s`."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.2f} {unit}"
    return f"{microseconds:.2f} us" if microseconds < 10 else f"{microseconds:.0f} us"


def cost(usd: float | None) -> str:
    """`free`, `$0.012`, `$1.23`; `unknown` where one call has no known price."""
    if usd is None:
        return "unknown"
    if usd == 0:
        return "free"
    return f"${usd:.2f}" if usd >= 1 else f"${usd:.3f}" if usd >= 0.001 else f"${usd:.1g}"


def tokens(usage: Usage) -> str:
    """`1,200 + 340 tokens`: of prompts and of answers."""
    counted = (usage.prompt_tokens, usage.completion_tokens)
    return "tokens unknown" if None in counted else "{:,} + {:,} tokens".format(*counted)


def duration(seconds: float) -> str:
    """`7.4 s`, `0:34`, `12:05`, `1:02:07`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def place(record: TurnRecord) -> str:
    """`turn 3` or `sample 3`, counted from 0 as in the records, the prompts and `agent.show`. Of
    hybrid `draft 3`, and `draft 3.1` for its first refinement."""
    match record.strategy:
        case Strategy.REFINE | Strategy.AGENT:
            return f"turn {record.turn}"
        case Strategy.SAMPLE:
            return f"sample {record.sample}"
        case Strategy.HYBRID:
            return f"draft {record.sample}" + (f".{record.turn}" if record.turn else "")


def outcome(evaluation: Evaluation) -> str:
    """An evaluation in half a line: its speedup and verdict, or why there is none."""
    if (timing := evaluation.timing) is not None:
        return f"{speedup(timing)} over {rival(timing)}, {timing.verdict}"
    if not evaluation.reason:
        return "correct, not timed"
    first = evaluation.message.strip().partition("\n")[0].partition(". ")[0]
    where = f" at {evaluation.case}" if evaluation.case else ""
    return f"{evaluation.reason}{where}: {first}" if first else f"{evaluation.reason}{where}"


def properties(evaluation: Evaluation) -> str:
    """What an audit showed that a program cannot rely on; empty where nothing was found."""
    return "".join(f"; {each}" for each in evaluation.audit.properties) if evaluation.audit else ""


def judged_again(confirmation: Confirmation) -> str:
    text = outcome(confirmation.evaluation)
    if findings := confirmation.evaluation.findings:
        text += f", {findings[0]}"
    if confirmation.found is not None:
        text += f"; {ratio(confirmation.found)}x in the search"
    text += properties(confirmation.evaluation)
    return text if confirmation.holds else f"struck: {text}"


def ledger(found: PromptLedger) -> Iterator[str]:
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in found.tokens.items())
    yield f"prompt: about {found.total:,} tokens ({parts})"
    for name, left_out in found.cut.items():
        yield f"cut: {left_out:,} characters of {name}"
