"""The answers that a page begins with, in sentences."""

from __future__ import annotations

from experiments.analysis.measures import measure_of
from experiments.analysis.run_report import RunReport
from experiments.analysis.table import gap, interval
from experiments.page.page_data import Finding
from experiments.study.answer import Answer
from tools.profiling.profile_facts import count_words


def of_contrast(answer: Answer) -> Finding:
    """What a study answers to one of its questions."""
    contrast = answer.contrast
    seeds = "1 seed" if answer.seeds == 1 else f"{answer.seeds} seeds"
    size = f"{answer.problems} of {answer.of_problems} problems, {seeds}"
    pairs = f"{contrast.text} ({answer.model})"
    if answer.difference is None:
        return Finding(
            verdict="Can't tell yet",
            settled=False,
            sentence=f"{pairs}: {answer.note}.",
            basis=size,
            planned=answer.planned,
        )
    label = measure_of(contrast.outcome).label
    return Finding(
        verdict=f"{answer.better} is better" if answer.better else "Can't tell",
        settled=bool(answer.better),
        sentence=f"{pairs}: {gap(answer.difference, answer.unit)} in {label}.",
        basis=(
            f"{size}; higher on {answer.b_higher}, lower on {answer.a_higher};"
            f" p = {answer.chance:.2g}, with Holm's correction {answer.holm:.2g}"
            f"{answer.note and f'; {answer.note}'}"
        ),
        planned=answer.planned,
    )


def of_run(told: RunReport, label: str) -> Finding:
    """Without a question: what a run reached."""
    kept, solved, faster = (
        told.figure(key).estimate for key in ("speedup_kept", "fast_0", "fast_1")
    )
    return Finding(
        verdict=interval(kept, "ratio"),
        settled=False,
        sentence=(
            f"{label}: geometric mean speedup over eager, where a failure counts 1."
            f" {interval(solved, 'share')} of problems have a correct kernel,"
            f" {interval(faster, 'share')} one that is faster than eager."
        ),
        basis=(
            f"{count_words(len(told.problems), 'problem')},"
            f" {count_words(told.facts.turns, 'call')}; 95 % intervals over problems"
        ),
        planned=None,
    )
