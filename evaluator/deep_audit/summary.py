"""A deep audit in words, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluator.audit_record import LifeTrial, SanitizerRun, Shares
from evaluator.evaluation import Evaluation

_OCCASIONS = {
    "asked": "asked for",
    "speedup": "for its speedup",
    "under_bound": "faster than the bound",
    "required": "for its label",
    "crash": "for its crash",
}


def audit_lines(evaluation: Evaluation) -> Iterator[str]:
    audit = evaluation.audit
    if audit is None:
        return
    if evaluation.provenance is not None:
        shares = f": {_shares(audit.shares)}" if audit.shares else ""
        yield f"provenance: {evaluation.provenance}{shares}"
    yield f"audited in {audit.seconds:.1f} s, {_OCCASIONS[audit.occasion]}"
    for run in audit.sanitizers:
        yield f"{run.tool}: {_run(run)}"
        yield from (f"  {finding}" for finding in run.findings)
    yield from _life(audit.life)


def _life(trials: Sequence[LifeTrial]) -> Iterator[str]:
    if not trials:
        return
    holding = ", ".join(trial.life for trial in trials if trial.outcome == "holds")
    if holding:
        yield f"used as programs use modules: right with {holding}"
    for trial in trials:
        if trial.outcome != "holds":
            tried = "" if trial.outcome == "broken" else "not tried: "
            yield f"property {trial.life}: {tried}{trial.note}"


def _shares(shares: Shares) -> str:
    parts = [f"{100 * shares.own:.0f} % of the time in its own kernels"]
    if shares.library_names and shares.library >= 0.005:
        names = ", ".join(shares.library_names[:3])
        parts.append(f"{100 * shares.library:.0f} % in libraries ({names})")
    if shares.other >= 0.005:
        parts.append(f"{100 * shares.other:.0f} % elsewhere")
    if shares.imports:
        parts.append(f"which call {', '.join(shares.imports[:3])}")
    return ", ".join(parts)


def _run(run: SanitizerRun) -> str:
    words = {
        "clean": f"clean over {run.calls} calls",
        "findings": f"{len(run.findings)} found",
        "inconclusive": f"inconclusive: {run.note}",
        "not_run": f"not run: {run.note}",
    }
    return words[run.outcome]
