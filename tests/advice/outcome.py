"""Whether the advice on a planted kernel named what was planted, and what became of it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from tests.advice.case import SIDES, Case, Side
from tests.advice.planted import CASES
from tests.advice.replay import Replay
from tests.advice.result import Result, stored
from tools.profiling.advice import Advice


class Outcome:
    """A case with the results of both of its sides, under the present rules."""

    def __init__(self, case: Case, results: dict[Side, Result]) -> None:
        self.case = case
        self.results = results

    @property
    def problem(self) -> str:
        """Why nothing can be said; empty where something can."""
        for side in SIDES:
            result = self.results.get(side)
            if result is None:
                return f"{side}: not run"
            if result.collected is None:
                return f"{side}: {result.status}" + (f", {result.error}" if result.error else "")
            if result.candidate != self.case.candidate(side).hash:
                return f"{side}: the kernel was changed since"
        return ""

    @cached_property
    def planted(self) -> Replay:
        return Replay(self.case.source("planted"), self.results["planted"])

    @cached_property
    def mended(self) -> Replay:
        return Replay(self.case.source("mended"), self.results["mended"])

    @property
    def naming(self) -> Advice | None:
        """The best-ranked advice on the planted kernel that names the fault."""
        return next((a for a in self.planted.advice if a.rule in self.case.rules), None)

    @property
    def named(self) -> bool:
        """The first-ranked advice names the fault."""
        return not self.problem and self.planted.advice[:1] == (self.naming,)

    @property
    def gone(self) -> bool:
        """The twin no longer gets it."""
        return not self.problem and not any(a.rule in self.case.rules for a in self.mended.advice)

    @property
    def moved(self) -> bool | None:
        """The figure moved as predicted; None where no advice named the fault."""
        if self.problem or self.naming is None:
            return None
        return self.mended.moved(self.naming)

    @property
    def shown(self) -> bool:
        """All of it."""
        return self.named and self.gone and self.moved is True

    @property
    def profile_seconds(self) -> tuple[float, ...]:
        """Of both sides, as far as they were profiled: of the process, and of reading its report.

        A process that was started ahead counts from when the request was handed over.
        """
        stages = [result.profile["stages"] for result in self.results.values() if result.profile]
        return tuple(stage["process"] + stage["import"] for stage in stages)


def outcomes(folder: Path) -> list[Outcome]:
    """All cases, those without results too."""
    results = stored(folder)
    return [
        Outcome(case, {s: r for s in SIDES if (r := results.get((case.name, s)))}) for case in CASES
    ]
