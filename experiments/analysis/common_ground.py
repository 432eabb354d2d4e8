"""What two runs can be compared on, and why some can't: refused in one line, never quietly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.analysis.label import model_label, model_note
from experiments.analysis.run_facts import LoadedRun, RunFacts
from experiments.analysis.statistics import FEWEST, LEVEL
from problems.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

SAME = ("device", "precision", "protocol", "size_class")


@dataclass(frozen=True)
class CommonGround:
    problems: tuple[str, ...]
    calls: int
    notes: tuple[str, ...]
    """What a reader must know, one line each."""


def common_ground(
    runs: tuple[LoadedRun, LoadedRun], *, common: bool = False, calls: int | None = None
) -> CommonGround:
    """Find the problems and the number of calls to compare two runs at.

    `common` leaves out problems that only one has; `calls` looks at the first calls only. Raises
    `UsageError` where the runs differ in what they were asked, or one is not finished.
    """
    a, b = (run.facts for run in runs)
    for setting in SAME:
        _refuse_difference(a, b, setting)
    problems, left_out = _problems(a, b, common=common)
    made = [_calls_made(run, problems) for run in runs]
    # A limit that ended no problem makes no difference.
    if any(
        min(c.values()) < run.budget and run.strategy != "agent"
        for run, c in zip((a, b), made, strict=True)
    ):
        _refuse_difference(a, b, "limits")
    agreed = _calls(a, b, made, calls)
    notes = (
        *left_out,
        *_notes(runs),
        *_unconfirmed(runs, problems),
        *_limits(a, b, problems, agreed, made),
        *_currencies(runs, problems, agreed),
    )
    return CommonGround(problems, agreed, notes)


def _refuse_difference(a: RunFacts, b: RunFacts, setting: str) -> None:
    mine, theirs = getattr(a, setting), getattr(b, setting)
    if mine != theirs:
        raise UsageError(
            f"{setting.replace('_', ' ')} differs: A ({a.run}) has {mine or 'none'}, B"
            f" ({b.run}) has {theirs or 'none'}; compare runs that share it"
        )


def _problems(a: RunFacts, b: RunFacts, *, common: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    both = tuple(name for name in a.hashes if name in b.hashes)
    differences = []
    for side, run, other in (("A", a, b), ("B", b, a)):
        if only := [name for name in run.hashes if name not in other.hashes]:
            differences.append(f"only {side} has {_list(only)}")
        if unbegun := [name for name in run.unbegun if name not in other.unbegun]:
            differences.append(f"{side} has no turn yet of {_list(unbegun)}")
    if not both:
        raise UsageError(f"{a.run} and {b.run} have no problem in common; compare other runs")
    if differences and not common:
        raise UsageError(
            f"the problems differ: {'; '.join(differences)}; "
            f"--common compares the {len(both)} that both have"
        )
    changed = [name for name in both if a.hashes[name] != b.hashes[name]]
    if changed:
        raise UsageError(
            f"the text of {_list(changed)} is not the same in both runs; repeat one of them"
        )
    return both, tuple(f"left out: {what}" for what in differences)


def unconfirmed(turns: pd.DataFrame) -> set[str]:
    """Solved problems whose best kernel was measured once only: it is too fast on average."""
    again = turns["confirmed_speedup"].notna() | turns["struck"]
    solved = set(turns.loc[turns["status"] == "correct", "problem"])
    return solved - set(turns.loc[again, "problem"])


def _unconfirmed(runs: Sequence[LoadedRun], problems: Sequence[str]) -> Iterator[str]:
    for side, run in zip("AB", runs, strict=True):
        turns = run.turns[run.turns["problem"].isin(problems)]
        if lacking := unconfirmed(turns):
            solved = turns.loc[turns["status"] == "correct", "problem"].nunique()
            yield (
                f"{side}: {len(lacking)} of {solved} best kernels were not judged again;"
                " their speedups are those of the search"
            )


def _calls_made(run: LoadedRun, problems: Sequence[str]) -> dict[str, int]:
    """Of each problem, how many calls there are from call 0 on without a gap."""
    made = {}
    for name in problems:
        calls = set(run.turns.loc[run.turns["problem"] == name, "call"])
        made[name] = next(call for call in range(len(calls) + 1) if call not in calls)
    return made


def _calls(a: RunFacts, b: RunFacts, made: Sequence[dict[str, int]], wanted: int | None) -> int:
    shared = min(min(counts.values()) for counts in made)
    remedy = f"compare at --calls {shared}" if shared else "finish both first"
    if wanted is None and a.budget != b.budget:
        raise UsageError(
            f"the budget differs: A ({a.run}) has {a.budget} calls a problem, B ({b.run}) has"
            f" {b.budget}; {remedy}"
        )
    calls = a.budget if wanted is None else wanted
    if a.limits:
        # Ended by tokens, dollars, seconds or an early stop, as both runs were asked to be.
        return calls
    for side, run, counts in (("A", a, made[0]), ("B", b, made[1])):
        name = min(counts, key=lambda problem: counts[problem])
        # An agent ends a problem when it likes.
        if counts[name] < calls and run.strategy != "agent":
            raise UsageError(
                f"{side} ({run.run}) has made {counts[name]} of {calls} calls on {name}; finish it"
                f" with the command that began it, or {remedy}"
            )
    return calls


def _limits(
    a: RunFacts, b: RunFacts, problems: Sequence[str], calls: int, made: Sequence[dict[str, int]]
) -> Iterator[str]:
    if len(problems) < FEWEST:
        yield (
            f"{len(problems)} problems: with fewer than {FEWEST} no difference can be clear at"
            f" {LEVEL:.0%}"
        )
    for side, run, counts in zip("AB", (a, b), made, strict=True):
        total, short = calls * len(problems), sum(min(count, calls) for count in counts.values())
        if short < total:
            yield (
                f"{side} made {short} of {total} calls ({run.limits or 'the agent ended it'}); what"
                " was not called counts as no kernel"
            )


def _currencies(
    runs: tuple[LoadedRun, LoadedRun], problems: Sequence[str], calls: int
) -> Iterator[str]:
    """With an agent: it spends its evaluations otherwise than a run, so what is equal is said."""
    facts = [run.facts for run in runs]
    if all(each.strategy != "agent" for each in facts):
        return
    limits = {each.limits for each in facts}
    also = f" within {limits.pop()}" if len(limits) == 1 and limits != {""} else ""
    spent = [run.turns[run.turns["problem"].isin(problems)] for run in runs]
    device = [turns["seconds_device"].sum() / len(problems) for turns in spent]
    yield (
        f"held equal: at most {calls} evaluations a problem{also}; device seconds a problem are"
        f" {device[0]:.1f} in A and {device[1]:.1f} in B"
    )
    for side, turns in zip("AB", spent, strict=True):
        if turns["tokens"].isna().any():
            yield f"{side}: tokens are not known, and are not held equal"


def _notes(runs: tuple[LoadedRun, LoadedRun]) -> Iterator[str]:
    sides = dict(zip("AB", runs, strict=True))
    for model in dict.fromkeys(run.facts.model for run in runs):
        if model_note(model):
            yield model_label(model)
    rungs = {side: run.facts.rungs for side, run in sides.items() if run.facts.rungs}
    if len({rung for names in rungs.values() for rung in names}) > 1:
        tiers = "; ".join(f"{side}: {', '.join(names)}" for side, names in rungs.items())
        yield f"profiles come from different profilers ({tiers}): P is not the same in all turns"
    for side, run in sides.items():
        unpriced = int(run.turns["cost_usd"].isna().sum())
        if unpriced:
            yield f"{side}: {unpriced} of {len(run.turns)} calls have no known price"
    versions = [run.facts.versions.get("torch", "") for run in runs]
    if all(versions) and versions[0] != versions[1]:
        yield f"eager is that of torch {versions[0]} in A and of torch {versions[1]} in B"


def _list(names: Sequence[str]) -> str:
    first = ", ".join(names[:3])
    return first if len(names) <= 3 else f"{first} and {len(names) - 3} more"
