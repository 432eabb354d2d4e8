"""How many mutants were killed: tables in Markdown, with Wilson's interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

from tests.mutation.judged import Judged


def wilson(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927)."""
    if of == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, z2 = hits / of, z * z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = z / (1 + z2 / of) * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def summary(records: Sequence[Judged], equivalent: Iterable[str] = ()) -> str:
    """Totals, then a table by status, kind, family and rule.

    `equivalent`: ids of mutants that were shown to be no wrong programs; they count apart.
    """
    apart = set(equivalent)
    subjects = [r for r in records if r.kind is None]
    mutants = [r for r in records if r.kind is not None]
    judged = [r for r in mutants if r.built and r.id not in apart]
    killed = sum(r.killed for r in judged)
    low, high = wilson(killed, len(judged))
    right = sum(r.status == "correct" for r in subjects)
    lines = [
        f"* {len(subjects)} kernels, {right} of them found right",
        f"* {len(mutants)} mutants, of which {sum(not r.built for r in mutants)} did not build and "
        f"{sum(r.id in apart for r in mutants)} were shown to be equivalent",
        f"* killed: {killed} of {len(judged)}, {killed / max(1, len(judged)):.2%} "
        f"(95 % interval {low:.2%} to {high:.2%}, Wilson)",
        "",
        _counts("killed as", Counter(f"{r.status}: {r.reason}" for r in judged if r.killed)),
        *(
            _table(name, judged, key)
            for name, key in (
                ("kind", lambda r: r.kind),
                ("kernel from", lambda r: r.origin),
                ("family", lambda r: r.family),
                ("rule", lambda r: f"{r.kind}: {r.rule}"),
            )
        ),
    ]
    return "\n".join(lines)


def _counts(name: str, counts: Counter[str]) -> str:
    rows = [f"| {key} | {count} |" for key, count in counts.most_common()]
    return "\n".join([f"| {name} | mutants |", "|---|---|", *rows, ""])


def _table(name: str, records: Sequence[Judged], key: Callable[[Judged], object]) -> str:
    groups: dict[str, list[Judged]] = {}
    for record in records:
        groups.setdefault(str(key(record)), []).append(record)
    rows = [
        f"| {group} | {len(them)} | {sum(r.killed for r in them)} | "
        f"{sum(not r.killed for r in them) or ''} |"
        for group, them in sorted(groups.items())
    ]
    return "\n".join([f"| {name} | judged | killed | survived |", "|---|---|---|---|", *rows, ""])
