"""An adjudication on disk: Markdown to read, CSV for a spreadsheet, JSON with all that is known."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from evaluator.batch.claims.judged_claim import (
    Adjudication,
    ClaimOutcome,
    JudgedClaim,
    difference,
    rival_words,
)
from evaluator.evaluation import Status, Verdict
from evaluator.settings import BaselineName
from problems.errors import UsageError

STEM = "adjudication"


def writable(folder: Path) -> list[Path]:
    """The files of a report in `folder`. Raises `UsageError` where they can't be written."""
    paths = [folder / f"{STEM}.{ending}" for ending in ("md", "csv", "json")]
    for path in paths:
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"{path} can't be written; name another folder with --results")
    return paths


def write_report(adjudication: Adjudication, paths: Sequence[Path]) -> None:
    markdown, table, whole = paths
    markdown.write_text("\n".join(_markdown(adjudication)) + "\n")
    with table.open("w", newline="") as file:
        names = _timed(adjudication.rows)
        rows = [_cells(row, names) for row in adjudication.rows]
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], restval="")
        writer.writeheader()
        writer.writerows(rows)
    whole.write_text(
        json.dumps(
            {
                "protocol": adjudication.protocol,
                "precision": adjudication.precision,
                "kernels": [row.model_dump(mode="json") for row in adjudication.rows],
            },
            indent=1,
        )
        + "\n"
    )


def _timed(rows: Sequence[JudgedClaim]) -> list[BaselineName]:
    return [name for name in BaselineName if any(name in row.rivals for row in rows)]


def _cells(row: JudgedClaim, names: Sequence[BaselineName]) -> dict[str, object]:
    """One row of the CSV file; each baseline has columns of its own."""
    figures: dict[str, object] = {}
    for name in names:
        rival = row.rivals.get(name)
        figures |= {
            f"{name}_us": rival.latency_us if rival else "",
            f"speedup_over_{name}": rival.speedup if rival else "",
            f"low_over_{name}": rival.speedup_low if rival else "",
            f"high_over_{name}": rival.speedup_high if rival else "",
            f"verdict_over_{name}": rival.verdict if rival else "",
        }
    return {
        "kernel": row.kernel,
        "problem": row.problem,
        "level": row.level,
        "claimed": "" if row.claimed is None else row.claimed,
        "outcome": row.outcome or "",
        "status": row.status,
        "reason": row.reason,
        "findings": "; ".join(row.findings),
        "error_ratio": "" if row.error_ratio is None else row.error_ratio,
        **figures,
        "kernelbench": row.kernelbench,
        "differs": row.differs,
        "device": row.device,
        "message": row.message,
    }


def _markdown(adjudication: Adjudication) -> Iterator[str]:
    rows = adjudication.rows
    yield "# Claimed and measured speedups"
    yield ""
    devices = sorted({row.device for row in rows if row.device})
    eager = rival_words(BaselineName.EAGER, rows)
    yield f"Device: {', '.join(devices) or 'none'}. Protocol: {adjudication.protocol}. Speedups are"
    yield f"over {eager}, with 95 % intervals, if nothing else is said."
    yield ""
    yield from _table(
        ("level", "kernels", "correct", "faster", "same, unclear", "slower", *_CLAIMED),
        [_level(level, list(group)) for level, group in groupby(rows, lambda row: row.level)],
    )
    if reasons := adjudication.reasons():
        yield "## Why kernels are refused"
        yield ""
        yield from _table(("reason", "kernels"), [(reason, n) for reason, n in reasons])
    yield "## Each kernel"
    yield ""
    names = _timed(rows)
    asked = any(row.kernelbench for row in rows)
    head = ["kernel", "claimed", *(f"over {name}" for name in names), "verdict"]
    yield from _table(
        (*head, *(["KernelBench"] if asked else [])),
        [
            (
                row.kernel,
                "" if row.claimed is None else f"{row.claimed:g}x",
                *(_interval(row, name) for name in names),
                _verdict(row),
                *([row.kernelbench] if asked else []),
            )
            for row in rows
        ],
    )
    if differing := [row for row in rows if row.differs]:
        yield "## Where KernelBench says something else"
        yield ""
        yield from (f"* {difference(row)}" for row in differing)


_CLAIMED = ("claim reached or in the interval", "below the claim")


def _level(level: int, rows: list[JudgedClaim]) -> tuple[object, ...]:
    correct = [row for row in rows if row.status == Status.CORRECT]
    timed = [
        row.rivals[BaselineName.EAGER].verdict for row in correct if row.rivals and not row.findings
    ]
    held = sum(row.outcome in (ClaimOutcome.MORE, ClaimOutcome.WITHIN) for row in rows)
    return (
        level,
        len(rows),
        len(correct),
        timed.count(Verdict.FASTER),
        timed.count(Verdict.SAME) + timed.count(Verdict.UNCLEAR),
        timed.count(Verdict.SLOWER),
        held,
        sum(row.outcome is ClaimOutcome.LESS for row in rows),
    )


def _interval(row: JudgedClaim, name: BaselineName) -> str:
    rival = row.rivals.get(name)
    if rival is None:
        return ""
    return f"{rival.speedup:.3g}x [{rival.speedup_low:.3g}, {rival.speedup_high:.3g}]"


def _verdict(row: JudgedClaim) -> str:
    if row.status == Status.CORRECT:
        findings = "; ".join(f"finding: {finding}" for finding in row.findings)
        rival = row.rivals.get(BaselineName.EAGER)
        return findings or (rival.verdict if rival else "correct, no time")
    return f"{row.status}: {row.reason}"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
    yield ""
