"""Turns as the page tells them: facts, texts and what changed, one block a trajectory."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from agent.record import figures
from agent.record.confirmation import Confirmation
from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.mismatch_words import mismatch_words
from evaluator.record import Record
from evaluator.settings import BaselineName
from tools.advice.words import advice_lines, score_lines
from tools.profiling.profile_facts import byte_words

_T = TypeVar("_T")


class TextRef(Record):
    """A text: its hash, and the trajectory whose block holds it. None: the block at hand."""

    hash: str
    block: int | None = None


class Section(Record):
    title: str
    text: TextRef | None
    missing: str = ""
    folded: bool = False


class KernelChange(Record):
    before: TextRef
    before_call: int
    steps: tuple[tuple[int, int, int, int], ...]
    """Runs of lines that differ: begin and end before, begin and end now, from 0."""


class TurnDetail(Record):
    heading: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    kernel: TextRef | None
    kernel_missing: str = ""
    change: KernelChange | None = None
    """None: there is no earlier kernel."""


class TurnBlock(Record):
    """One trajectory: its turns by call, and the texts that no earlier block holds."""

    turns: dict[int, TurnDetail]
    texts: dict[str, str]


def turn_block(
    place: int, records: Sequence[TurnRecord], files: RunFiles, homes: dict[str, int]
) -> TurnBlock:
    """The block at `place` of the trajectory `records`, which are in the order of calls.

    `homes`: of each text, the block that holds it. A text that an earlier block holds is not
    repeated; those that are new are added.
    """
    return _Trajectory(homes, place, records, files).block()


@dataclass
class _Trajectory:
    homes: dict[str, int]
    place: int
    records: Sequence[TurnRecord]
    files: RunFiles
    texts: dict[str, str] = field(default_factory=dict)

    def block(self) -> TurnBlock:
        return TurnBlock(turns={r.call: self._detail(r) for r in self.records}, texts=self.texts)

    @cached_property
    def _confirmations(self) -> list[Confirmation]:
        return self.files.confirmations(self.records[0].problem)

    def _detail(self, record: TurnRecord) -> TurnDetail:
        kernel, missing = self._kernel(record.candidate)
        return TurnDetail(
            heading=figures.outcome(record.evaluation),
            facts=tuple(_facts(record)) + tuple(self._second_verdicts(record)),
            sections=tuple(self._sections(record)),
            kernel=self._kept(kernel) if kernel is not None else None,
            kernel_missing=missing,
            change=self._change(record, kernel) if kernel is not None else None,
        )

    def _kept(self, text: str) -> TextRef:
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        home = self.homes.setdefault(key, self.place)
        if home != self.place:
            return TextRef(hash=key, block=home)
        self.texts[key] = text
        return TextRef(hash=key)

    def _kernel(self, candidate: str | None) -> tuple[str | None, str]:
        if candidate is None:
            return None, "The answer held no kernel."
        text = _read(lambda: self.files.kernel(candidate))
        return text, "" if text is not None else "This run's kernels are not kept here."

    def _change(self, record: TurnRecord, kernel: str) -> KernelChange | None:
        """Against the kernel that was to be refined, else the one before in the same sample."""
        earlier = [
            other
            for other in self.records
            if other.sample == record.sample and other.turn < record.turn and other.candidate
        ]
        parents = [other for other in earlier if other.candidate == record.parent]
        before = next(reversed(parents or earlier), None)
        old, _ = self._kernel(before.candidate) if before else (None, "")
        if before is None or old is None:
            return None
        matcher = difflib.SequenceMatcher(None, old.split("\n"), kernel.split("\n"), autojunk=False)
        return KernelChange(
            before=self._kept(old),
            before_call=before.call,
            steps=tuple(step[1:] for step in matcher.get_opcodes() if step[0] != "equal"),
        )

    def _second_verdicts(self, record: TurnRecord) -> Iterator[tuple[str, str]]:
        for each in self._confirmations:
            if (each.sample, each.turn) == (record.sample, record.turn):
                yield each.what, figures.judged_again(each)

    def _sections(self, record: TurnRecord) -> Iterator[Section]:
        for title, text in _texts(record):
            yield Section(title=title, text=self._kept(text))
        completion = _read(lambda: self.files.completion(record.completion).completion)
        folded = [
            ("Prompt", _read(lambda: self.files.prompt(record.prompt)), "prompts"),
            ("Answer", completion.text if completion else None, "answers"),
        ]
        if completion is not None and completion.reasoning:
            folded.append(("Reasoning", completion.reasoning, "answers"))
        for title, found, what in folded:
            if found is None:
                missing = f"This run's {what} are not kept here."
                yield Section(title=title, text=None, missing=missing)
            else:
                yield Section(title=title, text=self._kept(found), folded=True)


def _read(reader: Callable[[], _T]) -> _T | None:
    """None where the file is not kept."""
    try:
        return reader()
    except FileNotFoundError:
        return None


def _facts(record: TurnRecord) -> Iterator[tuple[str, str]]:
    evaluation, usage, seconds = record.evaluation, record.usage, record.seconds
    if (timing := evaluation.timing) is not None:
        yield "time", figures.latency(timing.latency_us)
        for name, baseline in timing.baselines.items():
            shown = figures.latency(baseline.latency_us)
            if name is not BaselineName.EAGER:
                shown += f" ({figures.ratio(baseline.speedup)}x, {baseline.verdict})"
            yield name, shown
        if timing.counted is not None:
            yield "reached", timing.counted.words
        if timing.sol_fraction is not None:
            yield "of the speed-of-light bound", figures.percent(timing.sol_fraction)
    if (correctness := evaluation.correctness) is not None:
        if correctness.error_ratio is not None:
            yield "error ratio", f"{correctness.error_ratio:.3g}"
        yield "calls judged", f"{correctness.calls_judged} of {correctness.calls_made}"
    memory = evaluation.memory
    if memory.candidate_bytes is not None and memory.baseline_bytes is not None:
        eager = byte_words(memory.baseline_bytes)
        yield "peak memory", f"{byte_words(memory.candidate_bytes)} (eager {eager})"
    if evaluation.provenance is not None:
        yield "time is spent in", str(evaluation.provenance)
    for twin, what in (
        (record.judged_with, "judged with"),
        (record.profiled_with, "profiled with"),
    ):
        if twin:
            yield what, f"{twin}, whose kernel is identical"
    yield "tokens", figures.tokens(usage).removesuffix(" tokens").removeprefix("tokens ")
    yield "cost", figures.cost(usage.cost_usd)
    for part in ("model", "build", "judge", "profile", "device"):
        if value := getattr(seconds, part):
            yield f"{part} seconds", figures.duration(value)
    yield "answered by", record.model_answered
    if record.finish_reason != "stop":
        yield "finish reason", record.finish_reason
    if record.repeated:
        yield "repeated", f"{record.repeated}x after an interruption"
    if record.candidate:
        yield "kernel", record.candidate
    yield "recorded", record.created.replace("T", " ")


def _texts(record: TurnRecord) -> Iterator[tuple[str, str]]:
    """What there is to read of a turn, heading and text; what says nothing is left out."""
    evaluation, profile = record.evaluation, record.profile
    build, correctness = evaluation.build, evaluation.correctness
    shuffled = record.shuffled_with
    told_above = evaluation.timing is not None or evaluation.message in figures.outcome(
        record.evaluation
    )
    advice = "\n".join(advice_lines(profile.advice)) if profile else ""
    shown = {f"- {piece.evidence}" for piece in profile.advice} if profile else set()
    texts = [
        ("Plan", record.plan),
        ("Message", "" if told_above else evaluation.message),
        ("Mismatch", "\n".join(mismatch_words(correctness)) if correctness else ""),
        ("Build log", build.log if build else ""),
        ("Detail", "" if build and build.log == evaluation.detail else evaluation.detail),
        ("Findings", "\n".join(evaluation.findings)),
        ("Notes", "\n".join(evaluation.notes)),
        (
            f"Profile: {profile.bottleneck} (from {profile.rung})" if profile else "",
            "\n".join(line for line in profile.summary.splitlines() if line not in shown)
            if profile
            else "",
        ),
        ("No profile", record.profile_error),
        ("Advice", advice),
        ("What became of the advice in the prompt", "\n".join(score_lines(record.advice_scores))),
        (
            "The prompt was about another kernel",
            f"{shuffled.kernel} ({shuffled.turn or shuffled.specimen})" if shuffled else "",
        ),
        (
            "Prompt tokens",
            "\n".join(figures.ledger(record.prompt_ledger)) if record.prompt_ledger else "",
        ),
    ]
    return ((title, text) for title, text in texts if text.strip())
